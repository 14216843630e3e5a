import { QueueEventsProducer, type Job, type Queue, type QueueEvents, type WorkerOptions } from 'bullmq';
import type { DefaultJobOptions, QueueEventsListener } from 'bullmq';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OpenOptions, Retry, Session, Work } from '../contender.js';

/** What BullMQ alone and BullMQ in Nest share: settings, and calls on queues. */

export const PREFIX = 'bench';

/** How many ended jobs are kept if results are kept. */
const KEPT = 1_000;

/** An event of our own, to check that a subscriber receives events. */
interface Ping extends QueueEventsListener {
  ping: () => void;
}

export function jobDefaults({ retry, keepResults }: OpenOptions): DefaultJobOptions {
  return { removeOnComplete: keepResults ? { count: KEPT } : true, ...(retry && retrying(retry)) };
}

function retrying({ attempts, backoff: type, delayMs: delay }: Retry): DefaultJobOptions {
  return { attempts, backoff: { type, delay, jitter: 0.2 } };
}

export function workerSettings(
  { concurrency }: Work,
  { leaseMs, rate }: Pick<OpenOptions, 'leaseMs' | 'rate'>,
): Omit<WorkerOptions, 'connection'> {
  return {
    concurrency,
    ...(leaseMs && { lockDuration: leaseMs, stalledInterval: leaseMs }),
    ...(rate && { limiter: { max: rate.max, duration: rate.perMs } }),
  };
}

/** Redis makes the id of an event, and it begins with the time. */
export function timeOf(eventId: string): number {
  return Number(eventId.slice(0, eventId.indexOf('-')));
}

export function sessionOf(queue: (name: string) => Queue, close: () => Promise<void>): Session {
  return {
    add: (name, data, { delayMs: delay } = {}) =>
      queue(name).add('noop', data, delay ? { delay } : undefined),
    addBulk: (name, batch, { delayMs: delay } = {}) =>
      queue(name).addBulk(batch.map((data) => ({ name: 'noop', data, ...(delay && { opts: { delay } }) }))),
    async schedule(name, id, every, data) {
      const next = await queue(name).upsertJobScheduler(id, { every }, { name: 'noop', data });
      return next!.timestamp + next!.delay;
    },
    async resultOf(name, added) {
      const job = await queue(name).getJob((added as Job).id!);
      return job?.returnvalue ?? undefined;
    },
    async outstanding(name) {
      const counts = await queue(name).getJobCounts('waiting', 'active', 'delayed', 'prioritized');
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    close,
  };
}

/** A connection that is ready may not be reading yet, and would miss events. So this waits for an event of our own. */
export async function untilHearing(events: QueueEvents, queue: string, url: string): Promise<void> {
  await events.waitUntilReady();
  const producer = new QueueEventsProducer(queue, { connection: { url }, prefix: PREFIX });
  let heard = false;
  events.once<Ping>('ping', () => (heard = true));
  while (!heard) {
    await producer.publishEvent({ eventName: 'ping' });
    await sleep(10);
  }
  await producer.close();
}
