import { Queue, QueueEvents, Worker } from 'bullmq';
import type { Contender, OpenOptions, Payload } from '../contender.js';
import { PREFIX, jobDefaults, sessionOf, timeOf, untilHearing, workerSettings } from './bullmq-queues.js';

export const bullmq: Contender = {
  name: 'bullmq',
  packages: ['bullmq', 'ioredis'],
  terms: [
    'Queue and Worker by themselves: acknowledged, at-least-once (a lock per job, renewed; stalled jobs are recovered)',
    'removeOnComplete: true, or the last 1,000 where results are kept; 1 attempt, its default, where retries are not mentioned; its event stream is on, as by default',
    'rates are the limiter of its workers, which counts in windows that begin with the first start after the one before; groups are not in the open-source version',
  ],
  offers: ['acknowledged', 'retries', 'delays', 'schedules', 'results', 'events', 'rates'],
  async open(options: OpenOptions) {
    const { url, queues: names, work, watch, watchStarts } = options;
    const shared = { connection: { url }, prefix: PREFIX };
    const queues = new Map(
      names.map((name) => [name, new Queue(name, { ...shared, defaultJobOptions: jobDefaults(options) })]),
    );
    const workers = work
      ? names.map((name) => {
          const settings = { ...shared, ...workerSettings(work, options) };
          return new Worker<Payload>(name, async (job) => work.handle(job.data), settings);
        })
      : [];
    const watchers =
      watch || watchStarts ? await Promise.all(names.map((name) => watcher(name, options))) : [];
    const parts = [...workers, ...watchers, ...queues.values()];
    await Promise.all(parts.map((part) => part.waitUntilReady()));
    return sessionOf(
      (name) => queues.get(name)!,
      async () => {
        await Promise.all([...workers, ...watchers].map((part) => part.close()));
        await Promise.all([...queues.values()].map((queue) => queue.close()));
      },
    );
  },
};

async function watcher(name: string, { url, watch, watchStarts }: OpenOptions): Promise<QueueEvents> {
  const events = new QueueEvents(name, { connection: { url }, prefix: PREFIX });
  if (watch) events.on('completed', () => watch(name));
  if (watchStarts) events.on('active', (_, id) => watchStarts(timeOf(id)));
  await untilHearing(events, name, url);
  return events;
}
