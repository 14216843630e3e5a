import { payload, type OpenOptions, type Payload, type Session } from '../contender.js';
import { QUEUE, type Figure, type Lab } from '../scenario.js';
import { meterRedis } from './redis-info.js';

export const BATCH = 1_000;

export const producedFigures: readonly Figure[] = [
  { key: 'perSecond', title: 'throughput', unit: 'jobs/s', better: 'more' },
  { key: 'redisCpu', title: 'Redis CPU per job', unit: 'µs', better: 'less' },
  { key: 'processCpu', title: 'producer CPU per job', unit: 'µs', better: 'less' },
];

/** Sends jobs in some manner; resolves when all are acknowledged. */
export type Send = (
  session: Session,
  jobs: readonly Payload[],
  progress: (jobs?: number) => void,
) => Promise<void>;

/** A fifth as many jobs as are measured go first unless said otherwise, since both V8 and the scripts of Redis start cold. */
export async function measureProducing(
  lab: Lab,
  jobs: number,
  send: Send,
  {
    make,
    durability,
    warmUp = warmUpFor(jobs),
  }: Pick<Filling, 'make'> & Pick<OpenOptions, 'durability'> & { readonly warmUp?: number } = {},
): Promise<Record<string, number>> {
  const cold = range(0, warmUp, make);
  const measured = range(warmUp, warmUp + jobs, make);
  const session = await lab.contender.open({ url: lab.url, queues: [QUEUE], durability });
  await send(session, cold, () => {});

  const redis = await meterRedis(lab.control);
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await send(session, measured, reporter(lab, jobs));
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  const spent = await redis();

  await expectWaiting(session, warmUp + jobs);
  await session.close();
  return {
    perSecond: jobs / (elapsedMs / 1000),
    redisCpu: spent.cpuUs / jobs,
    processCpu: (user + system) / jobs,
  };
}

/** Some queues keep such settings with the job, so the application that adds has them too. */
interface Filling extends Pick<OpenOptions, 'retry' | 'keepResults' | 'groups'> {
  /** Jobs to add. */
  readonly count: number;
  /** Number of the first one, which is how many are there already. @default 0 */
  readonly from?: number;
  readonly make?: (n: number) => Payload;
}

/** Puts jobs into the queue in calls of 1,000, from an application that is closed again. */
export async function fill(lab: Lab, { count, from = 0, make, ...open }: Filling): Promise<void> {
  const session = await lab.contender.open({ url: lab.url, queues: [QUEUE], ...open });
  const progress = reporter(lab, count);
  // Ten million made at once would fill the memory of this process.
  for (let at = from; at < from + count; at += BATCH) {
    await inBatches(session, range(at, Math.min(at + BATCH, from + count), make), progress);
  }
  await expectWaiting(session, from + count);
  await session.close();
}

/** One call after the other. */
export function inBatchesOf(size: number): Send {
  return async (session, jobs, progress) => {
    for (let at = 0; at < jobs.length; at += size) {
      const batch = jobs.slice(at, at + size);
      await session.addBulk(QUEUE, batch);
      progress(batch.length);
    }
  };
}

export const inBatches = inBatchesOf(BATCH);

export function warmUpFor(jobs: number): number {
  return Math.ceil(jobs / 5);
}

/**
 * After this many jobs V8 has compiled the code that runs for each job, if each job is a round trip of its own. Until then some jobs of every
 * contender wait for the compiler; the more code a contender has, the more jobs wait.
 */
export function longWarmUpFor(jobs: number): number {
  return Math.min(10_000, 5 * jobs);
}

/** Payloads `from` to `to - 1`. */
export function range(from: number, to: number, make = payload): Payload[] {
  return Array.from({ length: to - from }, (_, i) => make(from + i));
}

/** Counts jobs and says so twenty times in all, which costs nothing that could be measured. */
function reporter(lab: Lab, total: number): (jobs?: number) => void {
  const every = Math.max(1, Math.floor(total / 20));
  let done = 0;
  let said = 0;
  return (jobs = 1) => {
    done += jobs;
    if (done - said < every) return;
    said = done;
    lab.progress(done, total);
  };
}

async function expectWaiting(session: Session, expected: number): Promise<void> {
  const waiting = await session.outstanding(QUEUE);
  if (waiting !== expected) throw new Error(`${waiting} jobs wait where ${expected} were added`);
}
