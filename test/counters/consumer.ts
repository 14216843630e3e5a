import type { Job } from '#lib/job/job.js';
import type { JobOptions } from '#lib/options/job-options.js';
import type { QueueOptions } from '#lib/options/module-options.js';
import { PATIENT, processorOf, type QueueApp } from '../support/queue-app.js';
import type { TestRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { bootStill, bulk, inRounds, type Payload, type Rounds } from './lab.js';
import type { Measured } from './ledger.js';
import { Meter, type Spent } from './meter.js';

export interface Work {
  /** In all, in equal shares for the queues. */
  readonly jobs: number;
  /** Of each pool. */
  readonly concurrency: number;
  /** @default one */
  readonly queues?: readonly string[];
  /** One pool takes from all of them in strict order, not one pool for each. @default false */
  readonly isShared?: boolean;
  /** Of the queues. */
  readonly options?: Omit<QueueOptions, 'name'>;
  /** Of each job. */
  readonly jobOptions?: JobOptions;
  /** The handler. @default returns at once */
  readonly handle?: (job: Job<Payload>) => unknown;
  /** How often it is called in all. @default once for each job */
  readonly runs?: number;
  /** Called once all jobs are added, before the first of them begins. */
  readonly filled?: () => Promise<void>;
}

const BULK = 1_000;
/**
 * How many more timers and immediates a worker sets on a busy machine: if an answer comes when all of its slots are free, it waits for
 * the end of the turn before it asks again.
 */
const BY_ANSWERS = 30;

/**
 * Runs full queues until they are empty. While they are filled, jobs that wait for the others take every slot. So no
 * job is claimed before all are there, and then all begin in one tick.
 */
export class Consumer {
  private readonly meter: Meter;
  private readonly queues: readonly string[];
  private gate = latch();
  private done = latch();
  private waiting = 0;
  private left = 0;
  private app!: QueueApp;

  constructor(
    private readonly redis: TestRedis,
    private readonly work: Work,
  ) {
    this.meter = new Meter(redis.admin);
    this.queues = work.queues ?? ['line'];
  }

  async boot(): Promise<void> {
    const { concurrency, isShared, options } = this.work;
    const handlers = { noop: (job: Job<Payload>) => this.handle(job) };
    const pools = isShared ? [this.queues as [string, ...string[]]] : this.queues;
    this.app = await bootStill(this.redis, {
      queues: this.queues.map((name) => ({ name, completed: { max: 100_000 }, ...options })),
      providers: pools.map((pool) => processorOf(pool, handlers, { concurrency })),
    });
  }

  close(): Promise<void> {
    return this.app.close();
  }

  /** All jobs once, from the first claim to the last acknowledgement. */
  async round(): Promise<Spent> {
    await this.takeSlots();
    for (const queue of this.queues) {
      for (let left = this.work.jobs / this.queues.length; left > 0; left -= BULK)
        await this.app.queueOf(queue).addBulk(bulk(Math.min(left, BULK), this.work.jobOptions));
    }
    await this.work.filled?.();
    this.left = this.work.runs ?? this.work.jobs;
    this.done = latch();
    return this.meter.spend(
      () => {
        this.gate.open();
        return this.done.promise;
      },
      () => this.meter.atRest(),
    );
  }

  private async takeSlots(): Promise<void> {
    const { concurrency, isShared } = this.work;
    const queues = isShared ? this.queues.slice(0, 1) : this.queues;
    this.gate = latch();
    this.waiting = 0;
    for (const queue of queues) await this.app.queueOf(queue).addBulk(bulk(concurrency));
    await until(() => this.waiting === queues.length * concurrency, { ...PATIENT, what: 'no slot is free' });
  }

  private handle(job: Job<Payload>): unknown {
    if (!this.gate.isOpen) {
      this.waiting += 1;
      return this.gate.promise;
    }
    this.left -= 1;
    if (this.left === 0) this.done.open();
    return this.work.handle?.(job);
  }
}

/**
 * Measures the cost of running full queues until they are empty. Each round has an application of its own: a fast one claims
 * more than its slots, and the machine decides how many it has claimed when the gate opens.
 */
export function measureWork(
  redis: TestRedis,
  work: Work,
  more: Pick<Rounds, 'countsNode' | 'tolerance' | 'spareCalls'>,
): Promise<Measured> {
  const round = async () => {
    const consumer = new Consumer(redis, work);
    await consumer.boot();
    const spent = await consumer.round();
    await consumer.close();
    return spent;
  };
  return inRounds(redis, { jobs: work.jobs, round, spareTimers: BY_ANSWERS, ...more });
}
