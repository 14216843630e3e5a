import { setTimeout as pause } from 'node:timers/promises';
import { AUDITED } from '#lib/contract/audit-facts.js';
import { DuplicateJobError, GodwitError, JobFailedError } from '#lib/errors.js';
import type { JobOptions } from '#lib/options/job-options.js';
import type { Queue } from '#lib/producer/queue.js';
import { Random } from '../chaos/random.js';
import { Logs, type QueueApp } from '../support/queue-app.js';
import { until } from '../support/wait.js';
import { BUNDLE, GROUPS, NAMES, type Plan, type QueuePlan } from './plan.js';
import { bootSoakApp, type Stage } from './soak-app.js';
import { Watch, type Task } from './watch.js';

/**
 * No queue has these keys after its jobs have ended and been removed, and its workers have stopped. `ready` may have a line whose last
 * job was removed; the next claim drops it.
 */
const GONE = new RegExp(`:(${AUDITED.join('|')}|jobs\\w|workers|(worker|active):.*)$`);

/** How long the queues of a run may take until all jobs have ended. */
const DRAINS = { timeout: 45_000 } as const;
const EVENTS_ARRIVE = { timeout: 15_000 } as const;

interface SoakReport {
  readonly faults: readonly string[];
  readonly jobs: number;
  readonly starts: number;
}

/** Runs the applications of a plan with random jobs and acts until every job has ended. Returns the faults. */
export async function soak(
  redis: Stage['redis'],
  plan: Plan,
  cut: () => Promise<void> = async () => {},
): Promise<SoakReport> {
  const watch = new Watch(plan);
  const stage = { redis, plan, watch, logs: new Logs() };
  const producer = await bootSoakApp(stage, null);
  for (const { name } of plan.queues) {
    producer.events.of(name).subscribe((event) => watch.event(event));
    await producer.events.ready(name);
  }
  const run = new Run(stage, producer, cut);
  await run.play();
  await run.settle();
  return { faults: watch.faults, jobs: watch.jobs.size, starts: watch.starts };
}

class Run {
  private readonly random: Random;
  private readonly apps: QueueApp[] = [];
  /** Acts that end later: each pause has its end. */
  private readonly ends: Promise<unknown>[] = [];
  /** `addAndWait` */
  private readonly waits: Promise<unknown>[] = [];
  private readonly added: { queue: string; id: string }[] = [];
  private readonly retries = new Map<string, number>();
  private n = 0;

  constructor(
    private readonly stage: Stage,
    private readonly producer: QueueApp,
    private readonly cut: () => Promise<void>,
  ) {
    this.random = new Random(stage.plan.seed ^ 0x5bd1e995);
  }

  async play(): Promise<void> {
    const { plan } = this.stage;
    for (const app of plan.apps) this.apps.push(await bootSoakApp(this.stage, app));
    for (let i = 0; i < plan.acts; i++) {
      await this.allow(() => this.act());
      if (this.random.next() < 0.3) await pause(this.random.int(0, 15));
    }
  }

  /** Waits until every job has ended, and checks what is left. */
  async settle(): Promise<void> {
    const { watch, plan } = this.stage;
    await Promise.all(this.ends);
    for (const queue of plan.queues) await this.open(queue);
    for (const queue of plan.queues) await this.drain(queue);
    await Promise.all(this.waits);
    await Promise.all(this.apps.map((app) => app.close()));
    for (const { name } of plan.queues) {
      const { violations } = await this.queue(name).audit();
      for (const { text } of violations) watch.fault(`${name}: ${text}`);
      for (const state of ['dead', 'completed', 'cancelled'] as const)
        await this.queue(name).remove({ state });
    }
    for (const key of await this.stage.redis.keys()) if (GONE.test(key)) watch.fault(`${key} is left`);
    await until(() => watch.faultsOfEnds().length === 0, EVENTS_ARRIVE).catch(() => {
      for (const fault of watch.faultsOfEnds()) watch.fault(fault);
    });
    await this.producer.close();
  }

  /** Waits until a queue is empty. Dead jobs that stop their group are retried, and in the end removed. */
  private async drain(plan: QueuePlan): Promise<void> {
    const queue = this.queue(plan.name);
    let left = '';
    const isDrained = async () => {
      const counts = await queue.counts();
      left = JSON.stringify(counts);
      if (counts.waiting + counts.delayed + counts.active === 0) return true;
      await this.retryDead(queue);
      return false;
    };
    await until(() => isDrained(), { ...DRAINS, what: () => `${plan.name} is empty: ${left}` }).catch(
      async (error: Error) => {
        const limits = [...(await queue.limits.list()), ...(await queue.limits.listShared())];
        this.stage.watch.fault(`${error.message} ${JSON.stringify(limits)}`);
      },
    );
  }

  private async retryDead(queue: Queue): Promise<void> {
    this.stage.watch.isInOrder = false;
    const { jobs } = await queue.dead.list({ limit: 20 });
    for (const { id } of jobs) {
      const times = (this.retries.get(id) ?? 0) + 1;
      this.retries.set(id, times);
      await this.allow(() => (times > 3 ? queue.remove(id) : queue.dead.retry(id)));
    }
  }

  /** Ends everything that holds the jobs of a queue back. */
  private async open(plan: QueuePlan): Promise<void> {
    const queue = this.queue(plan.name);
    await queue.resume();
    await queue.limits.release();
    if (plan.order !== 'none') for (const group of GROUPS) await queue.group(group).resume();
    for (const app of this.apps) {
      await app.runtime.start();
      app.runtime.resume();
    }
  }

  private async act(): Promise<void> {
    const { plan } = this.stage;
    const queue = this.random.pick(plan.queues);
    const what = this.random.int(1, 100);
    if (what <= 55) return this.add(queue);
    if (what <= 68) return this.addBulk(queue);
    if (what <= 74) return this.addAndWait(queue);
    if (what <= 82) return this.change();
    if (what <= 92) return this.steer(queue);
    if (what <= 96) return this.restart();
    return this.cut();
  }

  private async add(plan: QueuePlan): Promise<void> {
    const { name, data, options } = this.job(plan);
    const { id, duplicate, dropped } = await this.queue(plan.name).add(name, data, options);
    if (!duplicate && !dropped) this.addedTo(plan.name, id);
  }

  private async addBulk(plan: QueuePlan): Promise<void> {
    const jobs = Array.from({ length: this.random.int(2, 15) }, () => this.job(plan, true));
    const results = await this.queue(plan.name).addBulk(jobs);
    for (const { id, duplicate, dropped } of results) if (!duplicate && !dropped) this.addedTo(plan.name, id);
  }

  private addedTo(queue: string, id: string): void {
    this.added.push({ queue, id });
    this.stage.watch.added(queue, id);
  }

  private addAndWait(plan: QueuePlan): void {
    const { n } = this;
    const data = this.task();
    const options = { ...this.groupOf(plan), timeout: '40s' } as const;
    const ended = this.queue(plan.name)
      .addAndWait<number>('first', data, options)
      .then(
        (result) => {
          if (result !== n) this.stage.watch.fault(`addAndWait of ${n} got ${JSON.stringify(result)}`);
        },
        (error: unknown) => {
          if (!(error instanceof JobFailedError)) throw error;
        },
      );
    this.waits.push(this.allow(() => ended));
  }

  /** Changes a job that was added a while ago. */
  private async change(): Promise<void> {
    if (this.added.length === 0) return;
    const { queue, id } =
      this.added[this.random.int(Math.max(0, this.added.length - 30), this.added.length - 1)]!;
    const it = this.queue(queue);
    const isStrict = this.stage.plan.queues.some(({ name, order }) => name === queue && order === 'strict');
    const act = this.random.int(1, 4);
    if (act === 1) await it.cancel(id, 'changed my mind');
    else if (act === 2) await it.remove(id);
    else if (act === 3) await it.promote(id);
    // In strict order a priority changes the order, and the checks expect that of the adds.
    else if (!isStrict) await it.update(id, { priority: this.random.int(0, 3) });
  }

  private async steer(plan: QueuePlan): Promise<void> {
    const queue = this.queue(plan.name);
    const app = this.random.pick(this.apps);
    const after = (undo: () => unknown) =>
      void this.ends.push(
        pause(this.random.int(1, 40)).then(() => this.allow(async () => void (await undo()))),
      );
    const act = this.random.int(1, 6);
    if (act === 1) {
      await queue.pause();
      after(() => queue.resume());
    } else if (act === 2 && plan.order !== 'none') {
      const group = queue.group(this.random.pick(GROUPS));
      await group.pause();
      after(() => group.resume());
    } else if (act === 3) {
      const concurrency = this.random.int(1, 6);
      this.stage.watch.allow(`queue ${plan.name}`, concurrency);
      if (plan.limits?.concurrency !== undefined) await queue.limits.set({ concurrency });
    } else if (act === 4) {
      await queue.limits.hold(this.random.int(1, 40));
    } else if (act === 5) {
      app.runtime.pause();
      after(() => app.runtime.resume());
    } else {
      const [name] = this.stage.plan.apps[this.apps.indexOf(app)]!.runs;
      app.runtime.setConcurrency(name!, this.random.int(4, 12));
    }
  }

  private async restart(): Promise<void> {
    const at = this.random.int(0, this.apps.length - 1);
    if (this.random.next() < 0.5) {
      await this.apps[at]!.close();
      this.apps[at] = await bootSoakApp(this.stage, this.stage.plan.apps[at]!);
    } else {
      await this.apps[at]!.runtime.stop();
      await this.apps[at]!.runtime.start();
    }
  }

  private task(): Task {
    const { random } = this;
    const fails = random.next() < 0.25 ? random.int(1, 3) : 0;
    const fault = random.pick(['error', 'error', 'unrecoverable', 'limited', 'snooze'] as const);
    return { n: this.n++, ms: random.int(0, 25), fails, fault };
  }

  private job(plan: QueuePlan, isBulk = false): { name: string; data: Task; options: JobOptions } {
    const { random } = this;
    const isStrict = plan.order === 'strict';
    const name = !isStrict && random.next() < 0.1 ? BUNDLE : random.pick(NAMES);
    const options: JobOptions = {
      ...this.groupOf(plan),
      attempts: random.int(1, 3),
      ...(random.next() < 0.2 ? { retention: '1h' } : {}),
      ...(random.next() < 0.05 ? { timeout: 15 } : {}),
      ...(random.next() < 0.05 ? { expiresIn: random.int(20, 200) } : {}),
    };
    if (name === BUNDLE) {
      const aggregate = {
        key: random.pick(['a', 'b']),
        maxDelay: random.int(10, 60),
        maxSize: random.int(2, 5),
      };
      return { name, data: this.task(), options: { ...options, aggregate } };
    }
    const place = isStrict ? {} : this.placeOf(options.group !== undefined);
    return {
      name,
      data: this.task(),
      options: { ...options, ...this.keyOf(isStrict, isBulk, 'delay' in place), ...place },
    };
  }

  private groupOf({ order }: QueuePlan): JobOptions {
    if (order === 'none' || (order === 'fair' && this.random.next() < 0.1)) return {};
    return { group: this.random.pick(GROUPS) };
  }

  private placeOf(hasGroup: boolean): JobOptions {
    const what = this.random.next();
    if (what < 0.15) return { delay: this.random.int(1, 60) };
    if (what < 0.3) return { priority: this.random.int(1, 5) };
    return what < 0.4 && !hasGroup ? { lifo: true } : {};
  }

  private keyOf(isStrict: boolean, isBulk: boolean, isDelayed: boolean): JobOptions {
    const { random } = this;
    const what = random.next();
    const key = random.pick(['x', 'y', 'z']);
    const until = random.pick(['started', 'settled', 50] as const);
    if (what < 0.03 && !isBulk) return { unique: { key, onDuplicate: 'error', until } };
    if (what < 0.06) return { unique: { key, until } };
    // In strict order a job that takes the place of another would not be where the checks expect it.
    if (what < 0.09 && !isStrict) return { unique: { key, onDuplicate: 'replace', until } };
    if (what < 0.12 && !isStrict && !isDelayed) return { unique: { key, onDuplicate: 'keepLast' } };
    return what < 0.17 ? { throttle: { key, ttl: random.int(5, 50) } } : {};
  }

  private queue(name: string): Queue {
    return this.producer.queueOf(name);
  }

  /** Random acts may be refused: the job has ended, the queue is full, the key is taken. */
  private async allow(act: () => unknown): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (error instanceof GodwitError && (ALLOWED.has(error.code) || error instanceof DuplicateJobError))
        return;
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.stage.watch.fault(text.split('\n').slice(0, 6).join('\n'));
    }
  }
}

const ALLOWED: ReadonlySet<string> = new Set([
  'GODWIT_JOB_NOT_FOUND',
  'GODWIT_WRONG_STATE',
  'GODWIT_QUEUE_FULL',
  'GODWIT_PARTIAL_BULK',
  // Its connection was cut.
  'GODWIT_REDIS_UNAVAILABLE',
]);
