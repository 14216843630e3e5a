import { setTimeout as pause } from 'node:timers/promises';
import { DuplicateJobError, GodwitError, JobFailedError } from '#lib/errors.js';
import type { AddResult } from '#lib/producer/add-result.js';
import type { Queue } from '#lib/producer/queue.js';
import type { QueueWorker } from '#lib/module/run-time-worker.js';
import { Random } from '../chaos/random.js';
import type { QueueApp } from '../support/queue-app.js';
import { until } from '../support/wait.js';
import { Jobs, type SoakJob } from './jobs.js';
import { GROUPS, NAMES, rateOf, SCHEDULES, type AppPlan, type QueuePlan } from './plan.js';
import { workOn, type Host, type Stage } from './soak-app.js';
import { OBLITERATED } from './watch.js';

/** Random acts may be refused: the job has ended, the queue is full, the key is taken. */
const ALLOWED: ReadonlySet<string> = new Set([
  'GODWIT_JOB_NOT_FOUND',
  'GODWIT_WRONG_STATE',
  'GODWIT_QUEUE_FULL',
  'GODWIT_GROUP_FULL',
  'GODWIT_PARTIAL_BULK',
  // Its connection was cut.
  'GODWIT_REDIS_UNAVAILABLE',
]);

/** How many processes of a run are ended in the middle, mostly with SIGKILL. */
const MOST_ENDED = 3;

/** The random acts of a run. */
export class Acts {
  readonly hosts: Host[] = [];
  private readonly random: Random;
  private readonly jobs: Jobs;
  /** Acts that end later: each pause has its end. */
  private readonly ends: Promise<unknown>[] = [];
  /** Adds in the background, and what waits for their jobs. */
  private readonly open = new Map<string, Promise<unknown>[]>();
  private readonly added: { plan: QueuePlan; id: string; job: SoakJob }[] = [];
  private ended = 0;
  /** Workers that were added while an application runs. */
  private readonly workers = new Map<QueueApp, QueueWorker>();

  constructor(
    private readonly stage: Stage,
    private readonly producer: QueueApp,
    private readonly start: (stage: Stage, plan: AppPlan) => Host | Promise<Host>,
    private readonly cut: () => Promise<void>,
  ) {
    this.random = new Random(stage.plan.seed ^ 0x5bd1e995);
    this.jobs = new Jobs(this.random, stage.watch);
  }

  async play(): Promise<void> {
    const { plan } = this.stage;
    for (const app of plan.apps) this.hosts.push(await this.start(this.stage, app));
    for (const host of this.hosts) await host.isUp;
    for (let i = 0; i < plan.acts; i++) {
      await this.allow(() => this.act());
      if (this.random.next() < 0.3) await pause(this.random.int(0, plan.paceMs));
    }
  }

  /** Resolves when the acts that end later have ended. */
  async end(): Promise<void> {
    await Promise.all(this.ends);
  }

  /** Some acts may be refused. Other errors are faults. */
  async allow(act: () => unknown): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (error instanceof GodwitError && (ALLOWED.has(error.code) || error instanceof DuplicateJobError))
        return;
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.stage.watch.fault(text.split('\n').slice(0, 6).join('\n'));
    }
  }

  private async act(): Promise<void> {
    const { plan } = this.stage;
    const queue = this.random.pick(plan.queues);
    const what = this.random.int(1, 100);
    if (what <= 48) return this.add(queue);
    if (what <= 61) return this.addBulk(queue);
    if (what <= 66) return this.addAndWait(queue);
    if (what <= 68) return this.schedule(queue);
    if (what <= 76) return this.change();
    if (what <= 80) return this.changeMany(queue);
    if (what <= 86) return this.steer(queue);
    if (what <= 92) return this.limit(queue);
    if (what <= 96) return this.restart();
    if (what <= 97) return this.obliterate(queue);
    return this.cut();
  }

  private async add(plan: QueuePlan): Promise<void> {
    const job = this.jobs.job(plan);
    const added = this.queue(plan).add(job.name, job.data, job.options);
    return this.wait(
      plan,
      added.then((result) => this.addedTo(plan, job, result)),
    );
  }

  private async addBulk(plan: QueuePlan): Promise<void> {
    const jobs = Array.from({ length: this.random.int(2, 15) }, () => this.jobs.job(plan, true));
    const added = this.queue(plan).addBulk(jobs);
    return this.wait(
      plan,
      added.then((results) => {
        for (const [i, result] of results.entries()) this.addedTo(plan, jobs[i]!, result);
      }),
    );
  }

  /** An add that waits for room does so while other acts follow. */
  private async wait(plan: QueuePlan, add: Promise<void>): Promise<void> {
    if (plan.maxWaiting?.onFull !== 'wait') return add;
    this.inBackground(plan, this.stage.watch.waits(plan.name, add));
  }

  private inBackground({ name }: QueuePlan, act: Promise<unknown>): void {
    const end = this.allow(() => act);
    this.ends.push(end);
    this.open.set(name, [...(this.open.get(name) ?? []), end]);
  }

  private addedTo(
    plan: QueuePlan,
    job: SoakJob,
    { id, duplicate, dropped, replaced, aggregated }: AddResult,
  ) {
    const { watch, witness } = this.stage;
    const { cost = 1 } = job.options;
    if (replaced) {
      witness.revised(plan.name, id, job.data.revision);
      watch.costs(plan.name, id, cost);
    }
    // Several adds make one job.
    if (duplicate || dropped || (aggregated && aggregated.size > 1)) return;
    this.added.push({ plan, id, job });
    watch.added(plan.name, id, job.options.group, cost);
  }

  private addAndWait(plan: QueuePlan): void {
    const data = this.jobs.task();
    // It is sent a moment later. In strict order its group has no other jobs, which might be sent before.
    const group = plan.order === 'strict' ? { group: `waits-${data.n}` } : this.jobs.groupOf(plan);
    const options = { ...group, waitTimeout: '3m' } as const;
    const ended = this.queue(plan)
      .addAndWait<number>('first', data, options)
      .then(
        (result) => {
          if (result !== data.n)
            this.stage.watch.fault(`addAndWait of ${data.n} got ${JSON.stringify(result)}`);
        },
        (error: unknown) => {
          if (!(error instanceof JobFailedError)) throw error;
        },
      );
    this.inBackground(plan, ended);
  }

  /** The schedules end before the end of the run. */
  private async schedule(plan: QueuePlan): Promise<void> {
    const { schedules } = this.queue(plan);
    const id = this.random.pick(Object.keys(SCHEDULES));
    const overlap = this.random.pick(['allow', 'skip', 'replace'] as const);
    // In strict order each schedule has a group, because they add their jobs at times of their own.
    const group = plan.order === 'strict' ? { group: `timed-${id}` } : this.jobs.groupOf(plan);
    const rule = { every: '1s', immediately: true, limit: SCHEDULES[id]!, overlap } as const;
    await schedules.upsert(id, rule, { name: 'first', data: this.jobs.task(), options: group });
    if (this.random.next() < 0.3) await schedules.runNow(id);
  }

  /** Changes a job that was added a while ago. */
  private async change(): Promise<void> {
    if (this.added.length === 0) return;
    const { plan, id, job } =
      this.added[this.random.int(Math.max(0, this.added.length - 30), this.added.length - 1)]!;
    const queue = this.queue(plan);
    const isStrict = plan.order === 'strict';
    const act = this.random.int(1, 6);
    if (act === 1) await queue.cancel(id, 'changed my mind');
    else if (act === 2) await queue.remove(id);
    else if (act === 3) await queue.promote(id);
    else if (act === 4 && job.options.id === undefined && !job.options.aggregate) {
      const revision = this.stage.watch.nextRevision();
      await queue.update(id, { data: { ...job.data, revision } });
      this.stage.witness.revised(plan.name, id, revision);
    }
    // In strict order these change the order, and the checks expect that of the adds.
    else if (act === 5 && !isStrict) await queue.update(id, { priority: this.random.int(0, 3) });
    else if (act === 6 && !isStrict) await queue.retry(id);
  }

  /** Acts on many jobs at once. */
  private async changeMany(plan: QueuePlan): Promise<void> {
    const queue = this.queue(plan);
    const name = this.random.pick(NAMES);
    const limit = this.random.int(1, 20);
    const state = this.random.pick(['waiting', 'delayed', 'completed', 'dead', 'cancelled'] as const);
    // Jobs that are retried come after later ones, unless their group waits for them.
    const mayRetry = plan.order !== 'strict' || plan.groups?.onDead === 'block';
    const act = this.random.int(1, 6);
    if (act === 1 && mayRetry) await queue.dead.retry({ limit });
    else if (act === 2) await queue.remove({ state, name, limit });
    else if (act === 3) await queue.promote({ limit });
    else if (act === 4) await queue.cancel({ name, limit });
    else if (act > 4) await this.changeInBackground(queue, mayRetry);
  }

  private async changeInBackground({ bulkActs }: Queue, mayRetry: boolean): Promise<void> {
    const kind = this.random.pick(['remove', 'promote', 'cancel', mayRetry ? 'retry' : 'remove'] as const);
    const name = this.random.pick(NAMES);
    const state = kind === 'remove' ? this.random.pick(['waiting', 'dead', 'completed'] as const) : undefined;
    const rate = { max: this.random.int(20, 100), per: '1s' } as const;
    const { id } = await bulkActs.start(
      kind,
      { name, ...(state && { state }), limit: this.random.int(1, 20) },
      { rate },
    );
    if (this.random.next() < 0.3) await bulkActs.stop(id);
    const hasEnded = async () => (await bulkActs.get(id))!.state !== 'running';
    const what = `the bulk act ${kind} has ended`;
    this.ends.push(this.allow(() => until(hasEnded, { timeout: 20_000, what })));
  }

  private async steer(plan: QueuePlan): Promise<void> {
    const queue = this.queue(plan);
    const at = this.random.int(0, this.hosts.length - 1);
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
      await queue.limits.hold(this.random.int(1, 40));
    } else if (act > 3) {
      const { app } = this.hosts[at]!;
      if (app) await this.steerApp(app, this.stage.plan.apps[at]!, act, after);
    }
  }

  private async steerApp(
    app: QueueApp,
    { runs }: AppPlan,
    act: number,
    after: (undo: () => unknown) => void,
  ) {
    if (act === 4) {
      app.runtime.pause();
      after(() => app.runtime.resume());
    } else if (act === 5) {
      app.runtime.setConcurrency(runs[0]!, this.random.int(1, 12));
    } else {
      await this.changeWorker(app, runs);
    }
  }

  /** Starts a worker of a queue that the application does not run, or stops it. */
  private async changeWorker(app: QueueApp, runs: readonly string[]): Promise<void> {
    const worker = this.workers.get(app);
    const other = this.stage.plan.queues.find(({ name }) => !runs.includes(name));
    if (worker) {
      this.workers.delete(app);
      await worker.stop();
    } else if (other) {
      this.workers.set(app, await workOn(this.stage, app, other.name, this.random.int(1, 8)));
    }
  }

  /** Changes a limit, or takes the changes back. */
  private async limit(plan: QueuePlan): Promise<void> {
    const { random } = this;
    const { watch } = this.stage;
    const queue = plan.name;
    const { limits } = this.queue(plan);
    for (const { name, running } of await limits.listShared()) watch.taken(name!, running);
    const isTakenBack = random.next() < 0.2;
    const change = {
      ...(random.next() < 0.7 ? { concurrency: random.next() < 0.15 ? null : random.int(1, 6) } : {}),
      ...(random.next() < 0.4 ? { rate: random.next() < 0.3 ? null : rateOf(random) } : {}),
    };
    // A change without a field is refused.
    const isBack = isTakenBack || Object.keys(change).length === 0;
    const note = (limit: string) => {
      watch.allow(limit, change.concurrency);
      watch.changeRate(limit);
    };
    const what = random.int(1, 4);
    const [use] = plan.uses ?? [];
    if (what === 1) {
      note(`queue ${queue}`);
      await (isBack ? limits.clear() : limits.set(change));
    } else if (what === 2 && plan.order === 'none') {
      const name = random.pick(['first', 'batch']);
      note(`name ${queue} ${name}`);
      await (isBack ? limits.clear({ name }) : limits.set(change, { name }));
    } else if (what === 3 && use) {
      note(`shared ${use}`);
      await (isBack ? limits.shared(use).clear() : limits.shared(use).set(change));
    } else if (what === 4 && plan.order !== 'none') {
      const group = this.queue(plan).group(random.pick(GROUPS));
      const weight = random.pick([0.5, 1, 3]);
      const maxSize = random.next() < 0.3 ? { maxSize: random.int(1, 20) } : {};
      // In strict order a group has neither a concurrency nor a weight of its own.
      const { concurrency, ...strict } = change;
      const own = { ...(plan.order === 'fair' ? { ...change, weight } : strict), ...maxSize };
      if (plan.order === 'fair') watch.allow(`group ${queue} ${group.name}`, concurrency);
      watch.changeRate(`group ${queue} ${group.name}`);
      await (isBack || Object.keys(own).length === 0 ? group.clear() : group.set(own));
    }
  }

  /** Deletes a queue while it is paused and runs no job. An event tells the watch which jobs it must forget. */
  private async obliterate(plan: QueuePlan): Promise<void> {
    // A dead job may stop all others of such a queue until the end of the run, so its adds in the background do not end before.
    if (plan.groups?.onDead === 'block') return;
    const { watch } = this.stage;
    const queue = this.queue(plan);
    await Promise.all(this.open.get(plan.name) ?? []);
    await queue.pause();
    try {
      await until(async () => (await queue.counts()).active === 0, { timeout: 20_000, what: 'no job runs' });
      await queue.obliterate();
      const before = watch.obliterations;
      await queue.publish(OBLITERATED);
      await until(() => watch.obliterations > before, { timeout: 15_000, what: 'the event has arrived' });
    } finally {
      await queue.resume();
    }
  }

  private async restart(): Promise<void> {
    const at = this.random.int(0, this.hosts.length - 1);
    const host = this.hosts[at]!;
    if (host.app && this.random.next() < 0.5) {
      await host.app.runtime.stop();
      await host.app.runtime.start();
      return;
    }
    // Processes take seconds to start.
    if (host.app === null && ++this.ended > MOST_ENDED) return;
    await host.end();
    if (host.app) this.workers.delete(host.app);
    // Another process takes a while to start. The others continue.
    this.hosts[at] = await this.start(this.stage, this.stage.plan.apps[at]!);
  }

  private queue({ name }: QueuePlan): Queue {
    return this.producer.queueOf(name);
  }
}
