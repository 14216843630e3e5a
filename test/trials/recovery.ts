import { setTimeout as pause } from 'node:timers/promises';
import { end, repeat, secondsSince, worst, type Lab, type Store } from './lab.js';
import type { Trial } from './trial.js';

const JOBS = 20;
const AT_ONCE = 4;

/** How soon the jobs of a killed worker run again. */
export const recovery: Trial = {
  name: 'recovery',
  what: `SIGKILL of a worker with ${JOBS} active jobs: seconds until they run elsewhere`,
  times: 20,
  async run(lab) {
    await kills(lab, 8_000, { first: 10, all: 12 });
    await kills(lab, 1_000, { first: 2.5, all: 2.5 });
  },
};

async function kills(lab: Lab, leaseMs: number, bounds: { first: number; all: number }): Promise<void> {
  const store = await lab.store();
  const names = Array.from({ length: lab.times }, (_, i) => `work-${i}`);
  const { queue } = await lab.producer(store, ...names);
  const taken = await repeat(lab.times, AT_ONCE, async (i) => {
    const name = names[i]!;
    const add = () => queue(name).addBulk(Array.from({ length: JOBS }, () => ({ name: 'hold', data: null })));
    const { first, all } = await kill(lab, store, name, leaseMs, add);
    lab.say(`lease ${leaseMs} ms, ${i + 1}: first ${first.toFixed(2)} s, all ${all.toFixed(2)} s`);
    return { first, all };
  });
  for (const which of ['first', 'all'] as const) {
    lab.judge({
      what: `lease ${leaseMs / 1000} s: ${which === 'first' ? 'the first job runs' : 'all jobs run'} again, worst of ${lab.times}`,
      value: worst(taken.map((one) => one[which])),
      unit: 's',
      atMost: bounds[which],
    });
  }
}

async function kill(lab: Lab, store: Store, queue: string, leaseMs: number, add: () => Promise<unknown>) {
  const root = { lease: { duration: leaseMs } };
  const plan = { queue, concurrency: JOBS };
  const victim = await lab.worker(store, { ...plan, root });
  const heir = await lab.worker(store, { ...plan, root: { ...root, autoStart: false } });
  await add();
  await victim.take(JOBS, 'started');
  await heir.call('start');
  // At any time between two beats, and between two checks of the worker that takes over.
  await pause(Math.random() * 2 * leaseMs);
  const since = performance.now();
  victim.kill('SIGKILL');
  const started = await heir.take(JOBS, 'started', () => true, { timeout: 60_000 });
  await end(heir);
  return { first: secondsSince(since, started[0]!.at), all: secondsSince(since, started.at(-1)!.at) };
}
