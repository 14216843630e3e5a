import { Ledger } from '../faults/support/ledger.js';
import { emptied, end, repeat, sum, type Lab, type Store } from './lab.js';
import type { Trial } from './trial.js';

const JOBS = 100;
const LEASE = { duration: 1_000 };
const AT_ONCE = 3;

/** Jobs survive the death of their workers, and a job that kills its worker does not take others with it. */
export const threeKills: Trial = {
  name: 'three-kills',
  what: `the same ${JOBS} jobs through three kills in a row, and ${JOBS - 1} jobs beside one that kills its worker`,
  times: 3,
  async run(lab) {
    const store = await lab.store();
    const kills = await repeat(lab.times, AT_ONCE, (i) => throughKills(lab, store, `kills-${i}`));
    lab.judge({
      what: `jobs completed after three kills, of ${lab.times * JOBS}`,
      value: sum(kills.map(({ completed }) => completed)),
      equals: lab.times * JOBS,
    });
    const poisons = await repeat(lab.times, AT_ONCE, (i) => besidePoison(lab, store, `poison-${i}`));
    lab.judge({
      what: `neighbours of a poisonous job completed, of ${lab.times * (JOBS - 1)}`,
      value: sum(poisons.map(({ completed }) => completed)),
      equals: lab.times * (JOBS - 1),
    });
    lab.judge({
      what: 'poisonous jobs dead as stalled',
      value: poisons.filter(({ isStalled }) => isStalled).length,
      equals: lab.times,
    });
    lab.judge({
      what: 'attempts counted for lost workers',
      value: sum([...kills, ...poisons].map(({ burned }) => burned)),
      equals: 0,
    });
  },
};

const add = (name: string) => ({ name, data: 50, options: { retention: '1h' } });

async function throughKills(lab: Lab, store: Store, name: string) {
  const queue = (await lab.producer(store, name)).queue(name);
  await queue.addBulk(Array.from({ length: JOBS }, () => add('hold')));
  const start = () => lab.worker(store, { queue: name, concurrency: JOBS, root: { lease: LEASE } });
  const attempts: number[] = [];
  // From its second stall on a job is claimed alone, so that only one job can cause the next one.
  for (const held of [JOBS, JOBS, 1]) {
    const worker = await start();
    const started = await worker.take(held, 'started', () => true, { timeout: 30_000 });
    attempts.push(...started.map(({ attempt }) => attempt));
    await end(worker);
  }
  const last = await start();
  await last.call('release');
  await emptied(queue);
  const { completed } = await queue.counts();
  await end(last);
  attempts.push(...last.all('started').map(({ attempt }) => attempt));
  lab.say(`${name}: ${completed} completed, ${sum(attempts.map((attempt) => attempt - 1))} attempts counted`);
  return { completed, burned: attempts.filter((attempt) => attempt > 1).length };
}

async function besidePoison(lab: Lab, store: Store, name: string) {
  const queue = (await lab.producer(store, name)).queue(name);
  const ledger = new Ledger();
  const { id: poison } = await queue.add('poison', null);
  await queue.addBulk(Array.from({ length: JOBS - 1 }, () => add('sleep')));
  let kills = 0;
  let burned = 0;
  for (;;) {
    const worker = await lab.worker(store, {
      queue: name,
      concurrency: JOBS,
      ledger: ledger.file(),
      root: { lease: LEASE },
    });
    const done = emptied(queue).then(() => 'done' as const);
    const ended = await Promise.race([worker.exited, done]);
    await end(worker);
    burned += worker.all('started').filter(({ attempt }) => attempt > 1).length;
    if (ended === 'done') break;
    done.catch(() => undefined);
    kills += 1;
  }
  const { completed } = await queue.counts();
  const job = await queue.get(poison);
  lab.say(`${name}: ${completed} completed, the poisonous job is ${job?.state} after ${kills} kills`);
  return { completed, burned, isStalled: job?.state === 'dead' && job.failure?.reason === 'stalled' };
}
