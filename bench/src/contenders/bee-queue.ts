import BeeQueue from 'bee-queue';
import type { AddOptions, Contender, OpenOptions, Payload } from '../contender.js';

/** Its own default for both: how long a job may be silent, and how often that is looked for. */
const STALL_MS = 5_000;

export const beeQueue: Contender = {
  name: 'bee-queue',
  packages: ['bee-queue', 'redis'],
  terms: [
    `acknowledged, at-least-once (each running job signs on; checkStalledJobs every ${STALL_MS / 1000} s, which it leaves to the user to start)`,
    'removeOnSuccess: true; 1 attempt, its default, where retries are not mentioned; sendEvents is on, as by default; getEvents only for who watches and storeJobs off, as it advises',
    'activateDelayedJobs is on, since delays and delayed retries need it; they are up to 1 s late (delayedDebounce)',
    'addBulk is saveAll: one script call per job in a pipeline, not atomic. No schedules, and results are published but not kept',
    'by node_redis 3, as it comes',
  ],
  offers: ['acknowledged', 'retries', 'delays', 'events'],
  async open(options: OpenOptions) {
    const { queues: names, retry, watch, work, leaseMs = STALL_MS } = options;
    const queues = new Map(names.map((name) => [name, queueOf(name, options)]));
    const queue = (name: string): BeeQueue<Payload> => queues.get(name)!;
    const jobOf = (name: string, data: Payload, { delayMs }: AddOptions = {}) => {
      const job = queue(name).createJob(data);
      if (retry) job.retries(retry.attempts - 1).backoff(retry.backoff, retry.delayMs);
      return delayMs ? job.delayUntil(Date.now() + delayMs) : job;
    };

    await Promise.all([...queues.values()].map((one) => one.ready()));
    for (const [name, one] of queues) {
      if (watch) one.on('job succeeded', () => watch(name));
      if (!work) continue;
      one.process(work.concurrency, async (job: BeeQueue.Job<Payload>) => work.handle(job.data));
      await one.checkStalledJobs(leaseMs);
    }
    return {
      add: (name, data, more) => jobOf(name, data, more).save(),
      async addBulk(name, batch, more) {
        const failed = await queue(name).saveAll(batch.map((data) => jobOf(name, data, more)));
        for (const error of failed.values()) throw error;
      },
      async outstanding(name) {
        const { waiting, active, delayed } = await queue(name).checkHealth();
        return waiting + active + delayed;
      },
      async close() {
        await Promise.all([...queues.values()].map((one) => one.close()));
      },
    };
  },
};

// An 'error' event without a listener ends the process and the measurement, as it should.
function queueOf(name: string, { url, keepResults, watch, work, leaseMs }: OpenOptions): BeeQueue<Payload> {
  return new BeeQueue<Payload>(name, {
    redis: { url },
    isWorker: work !== undefined,
    getEvents: watch !== undefined,
    storeJobs: false,
    activateDelayedJobs: work !== undefined,
    removeOnSuccess: !keepResults,
    stallInterval: leaseMs ?? STALL_MS,
  });
}
