import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../support/wait.js';
import { emptied, end, repeat, secondsSince, sum, worst, type Lab, type Store } from './lab.js';
import type { Trial } from './trial.js';

/** The default lease, and how often a worker sends a beat within it. */
const LEASE_MS = 8_000;
const BEAT_S = 2;
/**
 * Jobs of a round that are still running. The others end while their worker is stopped, and are settled when it goes
 * on.
 */
const STILL_RUNNING = 0.2;
const AT_ONCE = 4;

/** A worker that comes back after its lease settles nothing. */
export const zombies: Trial = {
  name: 'zombies',
  what: 'SIGSTOP of a worker past its lease, another takes its jobs, SIGCONT: what it says of them counts for nothing',
  times: 20,
  jobs: 12_500,
  async run(lab) {
    const store = await lab.store();
    const rounds = await repeat(lab.times, AT_ONCE, (i) => round(lab, store, i));
    const stale = sum(rounds.map((one) => one.stale));
    lab.judge({ what: 'stale settlements', value: stale, atLeast: Math.min(lab.jobs, 10_000) });
    lab.judge({
      what: 'of them accepted',
      value: sum(rounds.map(({ accepted }) => accepted)),
      equals: 0,
    });
    lab.judge({
      what: `jobs completed by their new worker, of ${stale}`,
      value: sum(rounds.map(({ completed }) => completed)),
      equals: stale,
    });
    lab.judge({
      what: 'the signals of its runs abort after it goes on, worst',
      value: worst(rounds.map(({ aborted }) => aborted)),
      unit: 's',
      atMost: BEAT_S,
    });
  },
};

async function round(lab: Lab, store: Store, i: number) {
  const name = `work-${i}`;
  const queue = (await lab.producer(store, name)).queue(name);
  const jobs = Math.ceil(lab.jobs / lab.times);
  const running = Math.ceil(jobs * STILL_RUNNING);
  const options = { retention: '1h' };
  const plan = { queue: name, concurrency: jobs };
  const zombie = await lab.worker(store, { ...plan, as: { ends: 'sleep' } });
  await queue.addBulk(Array.from({ length: running }, () => ({ name: 'hold', data: null, options })));
  await queue.addBulk(
    Array.from({ length: jobs - running }, () => ({ name: 'ends', data: LEASE_MS, options })),
  );
  const started = await zombie.take(jobs, 'started', () => true, { timeout: 60_000 });
  zombie.kill('SIGSTOP');
  const heir = await lab.worker(store, { ...plan, as: { ends: 'hold' } });
  await heir.take(jobs, 'started', () => true, { timeout: 120_000 });
  // Those that end have ended by now, and their worker has not reported it.
  await pause(Math.max(0, started.at(-1)!.at + LEASE_MS + 500 - performance.now()));
  const since = performance.now();
  zombie.kill('SIGCONT');
  const isLost = ({ reason }: { reason: string }) => reason === 'lease-lost';
  const aborted = await zombie.take(running, 'aborted', isLost, { timeout: 60_000 });
  await zombie.call('release');
  const ended = await zombie.take(jobs, 'ended', () => true, { timeout: 60_000 });
  const stale = ended.filter(({ at }) => at >= since).length;
  // It has sent all its reports once it has asked for work again.
  await pause(LEASE_MS / 2);
  const { completed: accepted, active } = await queue.counts();
  await heir.call('release');
  await emptied(queue);
  const { completed } = await queue.counts();
  await until(() => heir.all('ended').length === jobs);
  const seconds = secondsSince(since, worst(aborted.map(({ at }) => at)));
  lab.say(
    `${i + 1}: ${stale} stale settlements, ${accepted} accepted, ${active} still with the heir, aborted after ${seconds.toFixed(3)} s`,
  );
  await end(zombie, heir);
  return { stale, accepted, completed, aborted: seconds };
}
