import { Queue, Worker } from 'groupmq';
import { Redis } from 'ioredis';
import type { AddOptions, Contender, OpenOptions, Payload, Retry } from '../contender.js';

/**
 * Jobs of a group run one after another. So there are as many groups as four workers with 100 slots run at once; with
 * fewer jobs, each costs it more.
 */
const GROUPS = 400;

/** groupmq's auto-batching: one script call adds all jobs of the calls before it. */
const BATCH = { size: 1_000, maxWaitMs: 1 };

/**
 * How often due jobs are moved, at most 32 each time, and how soon it may be done again: its documentation has this for short
 * intervals. By default it is every 1.5 s.
 */
const SCHEDULER = { intervalMs: 10, lockMs: 50 };

/**
 * Two parts of it recover the jobs of a dead worker. The one that is first by default, when jobs are reserved, leaves their
 * groups blocked for ever; the other one fails them at their first stall. Like this the other one is mostly first, and gives
 * them back.
 */
const RECOVERY = { stalledInterval: 1_000, stalledGracePeriod: 0, maxStalledCount: 2 };

/** How many ended jobs are kept if results are kept. */
const KEPT = 1_000;

export const groupmq: Contender = {
  name: 'groupmq',
  packages: ['groupmq', 'ioredis'],
  terms: [
    'acknowledged, at-least-once (a deadline per job, extended by a heartbeat), with stalledInterval 1 s, stalledGracePeriod 0 and maxStalledCount 2: by its defaults the jobs of a killed worker never run again; with these they do unless its two ways of recovery meet',
    'one job of a group runs at a time, always; groups do not take turns, the oldest job goes first',
    `where no groups are asked for, jobs are spread over ${GROUPS.toLocaleString('en')} groups in turn; those with a delay have a group of their own, since it runs a delayed job early when others of its group are there`,
    `addBulk is its autoBatch (${BATCH.size.toLocaleString('en')} jobs or ${BATCH.maxWaitMs} ms) with all calls at once; add is without it, as by default`,
    `schedulerIntervalMs ${SCHEDULER.intervalMs}, schedulerLockTtlMs ${SCHEDULER.lockMs}, as it documents for short intervals: at most 32 due jobs are moved each ${SCHEDULER.lockMs} ms (1.5 s by default)`,
    'the delay of a retry counts from the whole second before it failed, so it comes up to 1 s early',
    'keepCompleted: 0, its default; 3 attempts with exponential backoff, its default, everywhere. No events for other processes',
  ],
  offers: ['acknowledged', 'retries', 'delays', 'schedules', 'results', 'groups'],
  retriesEarlyMs: 1_000,
  async open(options: OpenOptions) {
    const groups = options.groups;
    const lines = new Map(options.queues.map((name) => [name, lineOf(name, options)]));
    const line = (name: string): Line => lines.get(name)!;
    await Promise.all([...lines.values()].map(({ redis }) => redis.ping()));
    let added = 0;
    const jobOf = (data: Payload, { delayMs }: AddOptions = {}) => {
      added += 1;
      return delayMs
        ? { groupId: `delayed-${added}`, data, delay: delayMs }
        : { groupId: groups?.of(data.n) ?? `group-${added % GROUPS}`, data };
    };
    return {
      add: (name, data, more) => line(name).queue.add(jobOf(data, more)),
      addBulk: (name, batch, more) =>
        Promise.all(batch.map((data) => line(name).batching.add(jobOf(data, more)))),
      async schedule(name, groupId, every, data) {
        const { queue } = line(name);
        // Two calls would create it twice.
        await queue.removeRepeatingJob(groupId, { every });
        const { timestamp } = await queue.add({ groupId, data, repeat: { every } });
        return timestamp + every;
      },
      async resultOf(name, job) {
        const { status, returnvalue } = await line(name).queue.getJob((job as { id: string }).id);
        return status === 'completed' ? returnvalue : undefined;
      },
      async outstanding(name) {
        const { queue } = line(name);
        // Delayed jobs are counted among the waiting ones of their groups.
        const [waiting, active] = await Promise.all([queue.getWaitingCount(), queue.getActiveCount()]);
        return waiting + active;
      },
      async close() {
        await Promise.all([...lines.values()].flatMap(({ worker }) => worker?.close() ?? []));
        await Promise.all([...lines.values()].map(({ queue }) => queue.close()));
      },
    };
  },
};

interface Line {
  readonly redis: Redis;
  readonly queue: Queue<Payload>;
  readonly batching: Queue<Payload>;
  readonly worker?: Worker<Payload>;
}

function lineOf(namespace: string, { url, keepResults, retry, work, leaseMs }: OpenOptions): Line {
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  const settings = {
    redis,
    namespace,
    schedulerLockTtlMs: SCHEDULER.lockMs,
    ...(keepResults && { keepCompleted: KEPT }),
    ...(retry && { maxAttempts: retry.attempts }),
    ...(leaseMs && { jobTimeoutMs: leaseMs }),
  };
  const queue = new Queue<Payload>(settings);
  const worker =
    work &&
    new Worker<Payload>({
      queue,
      concurrency: work.concurrency,
      handler: async (job) => work.handle(job.data),
      ...(retry && { backoff: backoffOf(retry) }),
      schedulerIntervalMs: SCHEDULER.intervalMs,
      ...RECOVERY,
    });
  return { redis, queue, batching: new Queue<Payload>({ ...settings, autoBatch: BATCH }), worker };
}

function backoffOf({ backoff, delayMs }: Retry): (attempt: number) => number {
  return backoff === 'fixed' ? () => delayMs : (attempt) => delayMs * 2 ** (attempt - 1);
}
