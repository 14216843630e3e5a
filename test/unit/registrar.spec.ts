import { beforeEach, expect, it, vi } from 'vitest';
import type { ProcessRecord } from '#lib/contract/process-verbs.js';
import { Registrar, type ShownPool, type ShownRun } from '#lib/worker/registrar.js';
import { Slots } from '#lib/worker/slots.js';
import { atEnd } from '../support/cleanup.js';

const LEASE_MS = 8_000;

let shown: ProcessRecord[];
let clockMs: number;
let gone: string[];
const last = () => shown.at(-1)!;

beforeEach(() => {
  vi.useFakeTimers();
  atEnd(() => vi.useRealTimers());
  shown = [];
  gone = [];
  clockMs = 1_000_000;
});

function makeRegistrar(
  unregister: (id: string) => Promise<void> = async (id) => void gone.push(id),
): Registrar {
  const engine = {
    now: () => clockMs + performance.now(),
    processes: { server: 'Redis 8.2.0', unregister, worksOn: async () => {} },
  };
  const leases = { show: (record: ProcessRecord) => void shown.push(record) };
  const registrar = new Registrar(engine as never, leases, 'both', LEASE_MS, () => undefined);
  atEnd(() => registrar.stop());
  return registrar;
}

function pool(queue: string, more: Partial<ShownPool> = {}): ShownPool & { readonly runs: Set<ShownRun> } {
  const shape = {
    queue,
    worker: `${queue}.1`,
    concurrency: 3,
    isPaused: false,
    isQuiet: false,
    slots: new Slots(3),
    ...more,
  };
  return { ...shape, runs: new Set<ShownRun>() };
}
const run = (queue: string, id: string): ShownRun => ({
  queue,
  id,
  name: 'work',
  attempt: 1,
  begunAt: performance.now(),
});

it('shows queues that share their slots as one pool, with the jobs that run longest first', () => {
  const slots = new Slots(3);
  const [critical, low] = [
    pool('critical', { slots }),
    pool('low', { slots, isPaused: true, isQuiet: true }),
  ];
  const registrar = makeRegistrar();
  for (const one of [critical, low, pool('alone', { concurrency: 7 })]) registrar.add(one);
  low.runs.add(run('low', 'first'));
  vi.advanceTimersByTime(10);
  critical.runs.add(run('critical', 'second'));
  registrar.say('running');
  expect(last().pools).toMatchObject([
    {
      queues: ['critical', 'low'],
      paused: ['low'],
      quiet: ['low'],
      concurrency: 3,
      workers: ['critical.1', 'low.1'],
      running: 2,
      jobs: [
        { queue: 'low', id: 'first' },
        { queue: 'critical', id: 'second' },
      ],
    },
    { queues: ['alone'], concurrency: 7, running: 0, jobs: [] },
  ]);
});

it('registers at once, then once per heartbeat interval, and not after the end', async () => {
  const registrar = makeRegistrar();
  registrar.say('running');
  registrar.say('draining');
  expect(shown.map(({ state }) => state)).toEqual(['running', 'draining']);
  vi.advanceTimersByTime(LEASE_MS);
  expect(shown).toHaveLength(6);
  registrar.stop();
  await registrar.leave();
  vi.advanceTimersByTime(LEASE_MS);
  expect(shown).toHaveLength(6);
  expect(gone).toEqual([last().id]);
});

it('registers the same times if the estimate of the clock of Redis improves slightly, and others if that clock jumped', () => {
  const work = pool('work');
  const registrar = makeRegistrar();
  registrar.add(work);
  work.runs.add(run('work', 'a'));
  registrar.say('running');
  const times = ({ startedAt, pools }: ProcessRecord) => [startedAt, pools[0]!.jobs[0]!.since];
  const before = times(last());
  clockMs += 3;
  vi.advanceTimersByTime(LEASE_MS / 4);
  expect(times(last())).toEqual(before);
  clockMs += 90_000;
  vi.advanceTimersByTime(LEASE_MS / 4);
  expect(times(last())).toEqual(before.map((time) => time + 90_003));
});

it('leaves within a second without an answer, and does not unregister if it was never registered', async () => {
  const silent = makeRegistrar(() => new Promise<void>(() => undefined));
  silent.say('running');
  silent.stop();
  const left = silent.leave();
  await vi.advanceTimersByTimeAsync(1_000);
  await left;

  await makeRegistrar().leave();
  const failing = makeRegistrar(() => Promise.reject(new Error('away')));
  failing.say('running');
  await failing.leave();
  expect(gone).toEqual([]);
});

it('carries out no order after the end', () => {
  const registrar = makeRegistrar();
  registrar.say('running');
  registrar.stop();
  const { length } = shown;
  registrar.obey([{ id: 'o', kind: 'pause', queue: null, by: '' }]);
  expect(shown).toHaveLength(length);
});
