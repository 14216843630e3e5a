import { setTimeout as sleep } from 'node:timers/promises';
import type { Payload, Session } from '../contender.js';
import { fill, warmUpFor } from '../measure/produce.js';
import { meterRedis } from '../measure/redis-info.js';
import { Tally } from '../measure/tally.js';
import { settled } from '../measure/wait.js';
import { QUEUE, type Lab } from '../scenario.js';
import type { Growth } from './growth.js';

const CONCURRENCY = 10;
const AWAITED_MS = 10;
/** Jobs of a second at most that a worker can do whose handler awaits. */
const PER_WORKER = (CONCURRENCY * 1_000) / AWAITED_MS;
const SECONDS = 3;

/** Workers of one queue, all on one thread. To Redis they look like separate processes. */
export const workers: Growth = {
  name: 'workers',
  title: 'Workers of one queue',
  axis: { title: 'workers', base: 4 },
  sizes: [1, 4, 16, 64],
  figures: [
    { key: 'awaiting', title: `consume, handler awaits ${AWAITED_MS} ms`, unit: 'jobs/s', better: 'more' },
    {
      key: 'awaitingRedisCpu',
      title: `Redis CPU per job, handler awaits ${AWAITED_MS} ms`,
      unit: 'µs',
      better: 'less',
    },
    { key: 'noop', title: 'consume, no-op handler', unit: 'jobs/s', better: 'more' },
    { key: 'noopRedisCpu', title: 'Redis CPU per job, no-op handler', unit: 'µs', better: 'less' },
  ],
  notes: [
    `A worker is a Nest application with its own connections and identity, concurrency ${CONCURRENCY}. All are in one process: as 64 processes they would measure how two cores are shared among 65 programs. One worker alone can do ${PER_WORKER.toLocaleString('en')} jobs/s where the handler awaits, and what one thread can do where it does nothing; with more of them that thread is shared.`,
    'All are open before the first job ends.',
  ],
  at: (size) => ({
    measure: async (lab) => {
      const jobs = Math.min(lab.jobs, size * PER_WORKER * SECONDS);
      const awaiting = await measure(lab, { size, jobs, pause: () => sleep(AWAITED_MS) });
      const noop = await measure(lab, { size, jobs: lab.jobs });
      return {
        awaiting: awaiting.perSecond,
        awaitingRedisCpu: awaiting.redisCpu,
        noop: noop.perSecond,
        noopRedisCpu: noop.redisCpu,
      };
    },
  }),
};

interface Case {
  readonly size: number;
  readonly jobs: number;
  readonly pause?: () => Promise<void>;
}

async function measure(
  lab: Lab,
  { size, jobs, pause }: Case,
): Promise<{ perSecond: number; redisCpu: number }> {
  const warmUp = warmUpFor(jobs);
  await fill(lab, { count: warmUp + jobs });
  const tally = new Tally({ warmUp, jobs }, lab.progress);
  // Otherwise the first workers finish before the last ones are ready.
  let open = false;
  let letIn!: () => void;
  const opened = new Promise<void>((resolve) => (letIn = resolve));
  const run = pause
    ? (data: Payload): unknown => pause().then(() => tally.handle(data))
    : (data: Payload): unknown => tally.handle(data);
  const handle = (data: Payload): unknown => (open ? run(data) : opened.then(() => run(data)));

  const sessions: Session[] = [];
  for (let i = 0; i < size; i++) {
    const { contender, url } = lab;
    sessions.push(await contender.open({ url, queues: [QUEUE], work: { concurrency: CONCURRENCY, handle } }));
    lab.progress(i, size);
  }
  const redis = await meterRedis(lab.control);
  open = true;
  letIn();
  await tally.finished;
  await settled(sessions[0]!);
  const { cpuUs } = await redis();
  await Promise.all(sessions.map((session) => session.close()));
  return { perSecond: tally.perSecond, redisCpu: cpuUs / (warmUp + jobs) };
}
