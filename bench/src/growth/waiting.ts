import type { Payload, Session } from '../contender.js';
import { BATCH, fill, inBatches, range, type Send } from '../measure/produce.js';
import { meterRedis } from '../measure/redis-info.js';
import { Tally } from '../measure/tally.js';
import { QUEUE, type Lab } from '../scenario.js';
import { inLanes } from '../scenarios/add-in-flight.js';
import type { Growth } from './growth.js';

const CONCURRENCY = 100;
const PEERS_UP_TO = 1_000_000;
/** Warm-up uses a queue of its own, because it would make small sizes larger. */
const WARM_UP = 'warm-up';

/** Jobs that wait while others are added and processed. */
export const waiting: Growth = {
  name: 'waiting',
  title: 'Jobs that wait in the queue',
  axis: { title: 'jobs waiting', base: 10 },
  sizes: [1_000, 10_000, 100_000, 1_000_000, 10_000_000],
  peersUpTo: PEERS_UP_TO,
  figures: [
    {
      key: 'addBulk',
      title: `add in bulk, ${BATCH.toLocaleString('en')} a call`,
      unit: 'jobs/s',
      better: 'more',
    },
    { key: 'addInFlight', title: 'add, 100 calls in flight', unit: 'jobs/s', better: 'more' },
    { key: 'consume', title: `consume, concurrency ${CONCURRENCY}`, unit: 'jobs/s', better: 'more' },
    { key: 'redisCpu', title: 'Redis CPU per consumed job', unit: 'µs', better: 'less' },
  ],
  promise: { figures: ['addBulk', 'addInFlight', 'consume'], upTo: 1_000_000, worse: 0.1 },
  notes: [
    'So many wait before the first measured add, and at least as many are left behind the last measured job that is worked off.',
  ],
  memory: (size) => size * (size > PEERS_UP_TO ? 300 : 900),
  at: (size) => ({
    prepare: (lab) => fill(lab, { count: size }),
    measure: async (lab) => ({ ...(await produce(lab, size)), ...(await work(lab, size + 2 * lab.jobs)) }),
  }),
};

async function produce(lab: Lab, size: number): Promise<Record<string, number>> {
  const { url, contender, jobs } = lab;
  const session = await contender.open({ url, queues: [QUEUE, WARM_UP] });
  const cold: Session = {
    outstanding: () => session.outstanding(WARM_UP),
    close: () => session.close(),
    add: (_, data) => session.add(WARM_UP, data),
    addBulk: (_, data) => session.addBulk(WARM_UP, data),
  };
  const half = Math.ceil(jobs / 2);
  await inLanes(cold, range(0, half), () => {});
  await inBatches(cold, range(half, jobs), () => {});
  lab.progress(1, 4);
  const addBulk = await speedOf(inBatches, session, range(size, size + jobs));
  const addInFlight = await speedOf(inLanes, session, range(size + jobs, size + 2 * jobs));
  await expectLeft(session, size + 2 * jobs);
  await session.close();
  lab.progress(2, 4);
  return { addBulk, addInFlight };
}

async function speedOf(send: Send, session: Session, jobs: readonly Payload[]): Promise<number> {
  const startedAt = performance.now();
  await send(session, jobs, () => {});
  return jobs.length / ((performance.now() - startedAt) / 1_000);
}

async function work(lab: Lab, all: number): Promise<Record<string, number>> {
  const { url, contender, jobs } = lab;
  const cold = new Tally({ warmUp: 1, jobs: jobs - 1 }, () => {});
  const warm = await contender.open({
    url,
    queues: [WARM_UP],
    work: { concurrency: CONCURRENCY, handle: cold.handle },
  });
  await cold.finished;
  await warm.close();
  lab.progress(3, 4);

  const tally = new Tally({ warmUp: BATCH, jobs: jobs - BATCH, behind: all - jobs }, () => {});
  const redis = await meterRedis(lab.control);
  const session = await contender.open({
    url,
    queues: [QUEUE],
    work: { concurrency: CONCURRENCY, handle: tally.handle },
  });
  await tally.finished;
  const { cpuUs } = await redis();
  const redisCpu = cpuUs / tally.handled;
  await session.close();

  const after = await contender.open({ url, queues: [QUEUE] });
  await expectLeft(after, all - tally.handled);
  await after.close();
  return { consume: tally.perSecond, redisCpu };
}

async function expectLeft(session: Session, expected: number): Promise<void> {
  const left = await session.outstanding(QUEUE);
  if (left !== expected) throw new Error(`${left} jobs wait where ${expected} should`);
}
