import { beforeEach, expect, it, vi } from 'vitest';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootApp } from '../support/app.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect, type Collected } from '../support/wait.js';
import { Ledger } from './support/ledger.js';
import { spawnWorker } from './support/spawn.js';

// Tests that start processes take as long as the machine does.
vi.setConfig({ testTimeout: 120_000 });

/** Long enough that a living worker sends its beats in time while other processes start. */
const LEASE_MS = 2_000;

const redis = useRedis();
let queue: Queue;
let ledger: Ledger;
let said: Collected<QueueEvent>;

beforeEach(async () => {
  // Killed processes leave their records. Redis removes them after ten minutes.
  atEnd(() => redis.flush());
  ledger = new Ledger();
  const root = QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix, role: 'producer' });
  const { get } = await bootApp({ imports: [root, QueueModule.registerQueue({ name: 'work' })] });
  queue = get<Queue>(getQueueToken('work'));
  const events = get(QueueEvents);
  said = collect(events.of('work'));
  await events.ready('work');
});

const startWorker = () => spawnWorker(redis, ledger, 10, { lease: { duration: LEASE_MS } });

const NOTHING = { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0 };
const cancelled = (id: string) =>
  said.first((event) => event.type === 'cancelled' && event.jobId === id, PATIENT);

it('a cancelled job whose worker is killed ends once the lease is over, and runs no more', async () => {
  const first = await startWorker();
  const { id } = await queue.add('hold', null);
  await first.first('started');
  expect(await queue.cancel(id, 'not wanted')).toBe('signalled');
  first.kill('SIGKILL');
  const second = await startWorker();
  expect(await cancelled(id)).toMatchObject({ name: 'hold', attempt: 1, reason: 'not wanted' });
  expect(await queue.get(id)).toBeNull();
  const { id: next } = await queue.add('quick', null);
  await said.first((event) => event.type === 'completed' && event.jobId === next, PATIENT);
  expect(ledger.times('S')).toEqual(
    new Map([
      [id, 1],
      [next, 1],
    ]),
  );
  expect(await queue.counts()).toEqual(NOTHING);
  second.kill('SIGTERM');
  await second.exit();
});

it('a worker that was stopped for longer than its lease cannot bring a cancelled job back', async () => {
  const zombie = await startWorker();
  const { id } = await queue.add('hold', null);
  await zombie.first('started');
  const heir = await startWorker();
  zombie.kill('SIGSTOP');
  expect(await queue.cancel(id)).toBe('signalled');
  await cancelled(id);
  zombie.kill('SIGCONT');
  // Its handler ends for a job that is gone.
  await zombie.call('release');
  await zombie.first('ended', (one) => one.id === id);
  const { id: next } = await queue.add('quick', null);
  await said.first((event) => event.type === 'completed' && event.jobId === next, PATIENT);
  expect(await queue.counts()).toEqual(NOTHING);
  expect(ledger.times('E').get(next)).toBe(1);
  expect(ledger.times('S').get(id)).toBe(1);
  const ends = said.values.filter((event) => event.jobId === id).map(({ type }) => type);
  expect(ends).toEqual(['added', 'active', 'cancelled']);
  for (const worker of [zombie, heir]) worker.kill('SIGTERM');
  await Promise.all([zombie.exit(), heir.exit()]);
});

/** How a job may end after each answer, and how often it may have run. */
const COMES_TRUE: Readonly<Record<string, readonly string[]>> = {
  cancelled: ['cancelled 0'],
  // The handlers ignore the signal. But the job may have been claimed and not started.
  signalled: ['completed 1', 'cancelled 0'],
  'not-found': ['completed 1'],
};

it('is decided once, by Redis, against promotion, claims and ends: every answer is true', async () => {
  const runs = new Map<string, number>();
  const handlers = {
    async work({ id, data }: { id: string; data: number }) {
      runs.set(id, (runs.get(id) ?? 0) + 1);
      if (data > 0) await new Promise((resolve) => setTimeout(resolve, data));
    },
  };
  const root = { lease: { duration: LEASE_MS } };
  const workers = [
    await bootQueue(redis, { handlers, root, watch: false }),
    await bootQueue(redis, { handlers, root }),
  ];
  const { ended } = workers[1]!;
  const count = 600;
  const ids = Array.from({ length: count }, (_, i) => `j${i}`);
  const answers = new Map<string, string>();
  // Delays and times of the cancel shift against each other, so that they meet in every order.
  await queue.addBulk(
    ids.map((id, i) => ({
      name: 'work',
      data: i % 3,
      options: { id, delay: i % 2 === 0 ? 0 : (i * 7) % 400 },
    })),
  );
  await Promise.all(
    ids.map(async (id, i) => {
      await new Promise((resolve) => setTimeout(resolve, (i * 13) % 420));
      answers.set(id, await queue.cancel(id, 'a race'));
    }),
  );
  for (const id of ids) {
    const { type } = await ended(id);
    const ran = runs.get(id) ?? 0;
    const answer = answers.get(id)!;
    const text = `${id}: ${answer}, then ${type} after ${ran} runs`;
    expect(COMES_TRUE[answer], text).toContain(`${type} ${ran}`);
  }
  expect(new Set(answers.values()).size).toBeGreaterThan(1);
  const ends = workers[1]!.said.values.filter(({ type }) => type === 'completed' || type === 'cancelled');
  expect(new Set(ends.map(({ jobId }) => jobId)).size).toBe(count);
  expect(ends).toHaveLength(count);
  expect(await queue.counts()).toEqual(NOTHING);
  expect((await queue.audit()).violations).toEqual([]);
});
