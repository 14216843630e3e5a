import { counted, quoted } from '../job/text.js';
import { decodeBody } from '../job/job-record.js';
import type { QueueRegistry } from '../module/queue.registry.js';
import type { QueueRuntime } from '../module/queue.runtime.js';
import type { FindHandler } from '../worker/handler.js';
import { QueueTestingError } from './errors.js';
import { Hand } from './hand.js';
import { promoteDue } from './promote-due.js';
import type { JobRun } from './records.js';
import type { TestBench } from './test-bench.js';

/** What a filter sees of a job. */
export interface FilteredJob {
  /** The id that was passed, or generated. */
  readonly id: string;
  /** Which handler it is for. */
  readonly name: string;
  /** As it was added. */
  readonly data: any;
}

export type Matches = (job: FilteredJob) => boolean;

/** Runs jobs by hand, in all queues that have a processor. */
export class Hands {
  private readonly hands = new Map<string, Hand>();

  constructor(
    private readonly bench: TestBench,
    private readonly runtime: QueueRuntime,
    private readonly registry: QueueRegistry,
  ) {}

  /** Whether nothing runs by itself. */
  get isManual(): boolean {
    return this.runtime.state !== 'running' && this.runtime.state !== 'draining';
  }

  /** Queues that have a processor, in the order of their registration. */
  get queues(): readonly string[] {
    const finders = this.finders();
    return this.registry.names().filter((name) => finders.has(name));
  }

  /** How jobs of this queue find their handlers. */
  finderOf(queue: string): FindHandler {
    const find = this.finders().get(queue);
    if (find) return find;
    throw new QueueTestingError(
      `no processor of queue '${queue}' is among the providers of this module, so its jobs cannot run here`,
    );
  }

  /** Runs the next job that matches, or that is named by its id. */
  async runNext(queue: string, what: string, matches?: Matches): Promise<JobRun> {
    this.refuseWhileWorkersRun(what);
    const hand = this.handOf(queue);
    // What is due waits, only nobody has said so.
    await promoteDue(this.bench.engine, queue);
    const next = matches && this.waiting(queue).find(matches);
    const first = next ? () => this.bringForward(queue, next.id) : undefined;
    const run = matches && !next ? null : await hand.runNext(first);
    if (run) return run;
    throw new QueueTestingError(`${what}: ${await this.whyNothing(queue, matches !== undefined)}`);
  }

  /** Runs all that waits in these queues, and what comes of that, one job at a time, the queues in turn; adds to `runs`. */
  async drain(queues: readonly string[], what: string, limit: number, runs: JobRun[]): Promise<void> {
    this.refuseWhileWorkersRun(what);
    const hands = queues.map((queue) => this.handOf(queue));
    for (let before = -1; before < runs.length;) {
      before = runs.length;
      for (const hand of hands) {
        // oxlint-disable-next-line no-await-in-loop -- one at a time, so that a test sees the same order every time
        const run = await hand.runNext();
        if (run) runs.push(run);
        if (run && runs.length > limit) throw this.endless(what, limit, run);
      }
    }
  }

  /** A run of this job that has begun and not ended. */
  running(queue: string, id: string): Promise<JobRun> | undefined {
    return this.hands.get(queue)?.runs.get(id)?.end;
  }

  cancelled(queue: string, id: string, reason: string): void {
    this.hands.get(queue)?.cancel(id, reason);
  }

  private refuseWhileWorkersRun(what: string): void {
    if (this.isManual) return;
    throw new QueueTestingError(
      `${what}: the workers run by themselves here (autoStart); wait for them with testing.idle()`,
    );
  }

  private handOf(queue: string): Hand {
    let hand = this.hands.get(queue);
    if (!hand) {
      const { bench } = this;
      const find = this.finderOf(queue);
      hand = new Hand(bench.engine, this.registry.optionsOf(queue), find, bench.recordsOf(queue));
      this.hands.set(queue, hand);
    }
    return hand;
  }

  private finders(): ReadonlyMap<string, FindHandler> {
    const { prepared } = this.runtime;
    if (prepared === null) {
      throw new QueueTestingError(
        'the module is not initialised, so no handler is known yet: await module.init() after compile() (or app.init())',
      );
    }
    return new Map(prepared.plans.flatMap(({ queues }) => queues.map(({ queue, find }) => [queue, find])));
  }

  /** In the order in which they would be claimed. */
  private waiting(queue: string): FilteredJob[] {
    const { wait, prioritized } = this.bench.store.at(queue);
    return [...wait, ...prioritized.sorted()].map(({ id, name, body }) => ({
      id,
      name,
      data: decodeBody(body)?.data,
    }));
  }

  private bringForward(name: string, id: string): void {
    const queue = this.bench.store.at(name);
    const job = queue.jobs.get(id);
    if (job?.place !== 'wait' && job?.place !== 'prioritized') return;
    queue.leave(job);
    queue.wait.unshift(job);
  }

  private async whyNothing(queue: string, isFiltered: boolean): Promise<string> {
    const { waiting, delayed, paused } = await this.bench.engine.admin.counts(queue);
    if (paused) return `queue '${queue}' is paused, so none of its ${waiting} waiting jobs is claimed`;
    if (isFiltered && waiting > 0) {
      const there = this.waiting(queue).slice(0, 10);
      const names = there.map(({ name, id }) => `${quoted(name)} (${id})`).join(', ');
      const more = waiting > there.length ? ` and ${waiting - there.length} more` : '';
      return `no waiting job of queue '${queue}' matches; waiting: ${names}${more}`;
    }
    if (delayed === 0) return `nothing waits in queue '${queue}', and nothing is delayed`;
    const due = new Date(this.bench.store.at(queue).delayed.first!.score).toISOString();
    const now = new Date(this.bench.clock.now()).toISOString();
    return `nothing waits in queue '${queue}'; ${delayed} delayed, the first until ${due}, and now it is ${now}: testing.advance() moves the clock`;
  }

  private endless(what: string, limit: number, { queue, name, id }: JobRun): QueueTestingError {
    return new QueueTestingError(
      `${what} has run more than ${counted(limit, 'job')} and would not end; the last was ${quoted(name)} (${id}) of queue '${queue}'. ` +
        'Handlers that add jobs without end? { limit } allows more',
    );
  }
}
