import type { OnApplicationBootstrap, OnModuleInit, Type } from '@nestjs/common';
import { clearTimeout, setTimeout } from 'node:timers';
import { BootstrapError, InvalidOptionError } from '../../errors.js';
import { toQueueEvent, type QueueEvent } from '../../events/queue-event.js';
import type { QueueEvents } from '../../events/queue-events.js';
import { isDefinition, type AnyDefinition, type InputOf, type ResultOf } from '../../job/define-job.js';
import { parseDuration, type Duration } from '../../job/duration.js';
import { generateId } from '../../job/job-id.js';
import type { Listeners } from '../../handlers/listeners/listeners.js';
import { Declarer } from '../../schedule/declarer.js';
import { integer, refuse } from '../../options/check.js';
import type { ResolvedModuleOptions } from '../../options/module-options.js';
import type { QueueRegistry } from '../../module/queue.registry.js';
import type { QueueRuntime } from '../../module/queue.runtime.js';
import { ManualWait, ManualWorkers } from './manual-workers.js';
import type { JobRun } from './records.js';
import { LoneRun, readRun, type RunOptions } from './run-one.js';
import { QueueTestingError, type TestBench } from './test-bench.js';
import { TestQueue, type DrainOptions } from './test-queue.js';
import { TimeWalk } from './time-walk.js';
import { within } from '../../contract/retry.js';

/** Options of `advance` and `advanceTo`. */
export interface AdvanceOptions extends DrainOptions {
  /** Run jobs that become due or that limits allow to start, each at its own time, so that retries play out. @default false */
  readonly run?: boolean;
}

const DEFAULT_LIMIT = 1000;
const DEFAULT_IDLE = '10s';
/** Maximum wait for listeners, so that a slow one does not block a test. */
const LISTENERS_MS = 2_000;

/**
 * The queues of a test, and its clock. Inject it, or get it with `module.get(QueueTesting)`.
 *
 * @example
 * const module = await Test.createTestingModule({ imports: [QueueTestingModule.forRoot(), AppModule] }).compile();
 * await module.init();
 * const testing = module.get(QueueTesting);
 * await testing.queue('email').drain();
 */
export class QueueTesting implements OnModuleInit, OnApplicationBootstrap {
  private readonly workers: ManualWorkers;
  private readonly walk: TimeWalk;
  private readonly queues = new Map<string, TestQueue>();

  /** @internal */
  constructor(
    private readonly bench: TestBench,
    private readonly runtime: QueueRuntime,
    private readonly registry: QueueRegistry,
    private readonly events: QueueEvents,
    private readonly listeners: Listeners,
    private readonly settings: Pick<ResolvedModuleOptions, 'owner' | 'lease'>,
  ) {
    this.workers = new ManualWorkers(bench, runtime, registry);
    this.walk = new TimeWalk(
      bench,
      () => registry.names(),
      () => this.workers.opensAt(registry.names()),
    );
    bench.tools = {
      cancelled: (queue, id, reason) => this.workers.cancelled(queue, id, reason),
      waitFor: (queue, id) =>
        this.workers.isManual ? new ManualWait(queue, id, bench, this.workers, this.walk) : null,
    };
  }

  /** The time of the test's clock. It decides which jobs are due; `Date` is not affected. */
  get now(): Date {
    return new Date(this.bench.clock.now());
  }

  /**
   * One queue.
   *
   * @throws {UnknownQueueError} if no module registers it
   */
  queue(queue: string | AnyDefinition): TestQueue {
    const { name } = this.registry.optionsOf(isDefinition(queue) ? queue.queue : queue);
    let made = this.queues.get(name);
    if (!made) this.queues.set(name, (made = this.makeQueue(name)));
    return made;
  }

  /**
   * Runs one handler as a worker would, with its schema, guards, interceptors, pipes, filters and scope. Nothing is stored.
   *
   * @param job a definition; or a queue or the class of a processor, and the name of the job
   * @typeParam Result the return value of the handler, for a job without a definition
   * @returns what the handler returns
   * @throws what the handler throws, unchanged
   * @throws {QueueTestingError} if there is no such handler
   * @throws {UnknownQueueError} if no module registers the queue
   * @throws {InvalidOptionError | InvalidPayloadError | PayloadTooLargeError | InvalidJobNameError | InvalidJobIdError}
   * @example
   * await testing.run(EmailProcessor, 'welcome', { to: 'ada@example.com' });
   * await expect(testing.run('email', 'welcome', { to: 'nobody' }, { attempt: 3 })).rejects.toThrow('mailbox is full');
   */
  run<D extends AnyDefinition>(job: D, data: InputOf<D>, options?: RunOptions): Promise<ResultOf<D>>;
  run<Result = unknown>(
    where: string | Type,
    job: string | AnyDefinition,
    data: unknown,
    options?: RunOptions,
  ): Promise<Result>;
  async run(...args: unknown[]): Promise<unknown> {
    const lone = new LoneRun(
      this.workers,
      (queue) => this.registry.optionsOf(queue),
      () => this.bench.clock.now(),
    );
    return lone.start(readRun(args));
  }

  /**
   * Like `TestQueue.drain`, for all queues that have a processor, until no job waits in any of them.
   *
   * @throws {QueueTestingError} after more than `limit` runs, or with `autoStart: true`
   * @throws {InvalidOptionError} for an invalid limit
   */
  drain(options?: DrainOptions): Promise<JobRun[]> {
    return this.drainAll(this.workers.queues, 'drain()', options);
  }

  /**
   * Moves the clock forward, stopping at every time at which something is due: delayed jobs become waiting, and schedules add
   * jobs. No job runs before `drain`, unless `run` is true. If workers run by themselves, they run the jobs that become due.
   *
   * @returns the runs; none if workers run by themselves
   * @throws {InvalidOptionError} for an invalid duration
   * @throws {QueueTestingError} if `run` needs more than `limit` runs
   * @example
   * await testing.advance('1h');
   * await testing.advance('1d', { run: true }); // a chain of retries plays out, each at its own time
   */
  async advance(by: Duration, options?: AdvanceOptions): Promise<JobRun[]> {
    const ms = parseDuration(by, 'advance()');
    return this.goTo(this.bench.clock.now() + ms, 'advance()', options);
  }

  /**
   * Like `advance`, but moves the clock to this time. A time in the past changes nothing.
   *
   * @throws {InvalidOptionError} for an invalid date
   * @throws {QueueTestingError} if `run` needs more than `limit` runs
   * @example
   * await testing.advanceTo(new Date('2026-01-01T09:00:00Z'));
   */
  async advanceTo(moment: Date, options?: AdvanceOptions): Promise<JobRun[]> {
    const ms = moment instanceof Date ? moment.getTime() : Number.NaN;
    if (Number.isNaN(ms)) throw new InvalidOptionError('advanceTo()', 'a Date', moment);
    return this.goTo(ms, 'advanceTo()', options);
  }

  /**
   * For workers that run by themselves: resolves when no job waits or runs in any queue that has a processor. It does not wait for
   * delayed jobs, or for jobs in paused queues.
   *
   * @param options `timeout`: maximum wait, in real time; '10s' by default
   * @throws {QueueTestingError} after the timeout, with the jobs that are left; and if no workers run by themselves
   * @throws {InvalidOptionError} for an invalid timeout
   */
  async idle(options: { readonly timeout?: Duration } = {}): Promise<void> {
    const timeoutMs = parseDuration(options.timeout ?? DEFAULT_IDLE, 'idle().timeout');
    await awaitIdle(this.bench, this.workers, timeoutMs);
    await this.flushListeners();
  }

  /** Empties all queues: see `TestQueue.clear`. Never rejects. */
  async clear(): Promise<void> {
    await Promise.all(this.registry.names().map((name) => this.clearOne(name)));
  }

  /** @internal */
  onModuleInit(): void {
    if (this.bench.isInUse) return;
    throw new BootstrapError([
      'QueueTestingModule.forRoot() is imported more than once, or QUEUE_ENGINE is overridden too; ' +
        'import it once, next to the modules that are tested, and override none of its providers',
    ]);
  }

  /** @internal Declares the schedules in the code. Workers that run by themselves do it on their own. */
  async onApplicationBootstrap(): Promise<void> {
    if (this.workers.isManual) await this.declare(() => true);
  }

  private makeQueue(name: string): TestQueue {
    const records = this.bench.recordsOf(name);
    return new TestQueue(name, {
      added: () => records.added,
      runs: () => records.runs,
      events: () => this.eventsOf(name),
      runNext: async (what, matches) => {
        const run = await this.workers.runNext(name, what, matches);
        await this.flushListeners();
        return run;
      },
      drain: (what, options) => this.drainAll([name], what, options),
      clear: () => this.clearOne(name),
    });
  }

  private eventsOf(name: string): QueueEvent[] {
    const { events: log } = this.bench.store.at(name);
    const events: QueueEvent[] = [];
    for (let batches = log.after(0); batches.length > 0; batches = log.after(batches.at(-1)!.last)) {
      for (const batch of batches) {
        for (const raw of batch.events) events.push(toQueueEvent(batch, raw)!);
      }
    }
    return events;
  }

  private async drainAll(
    queues: readonly string[],
    what: string,
    options: DrainOptions | undefined,
  ): Promise<JobRun[]> {
    const runs: JobRun[] = [];
    const limit = limitOf(what, options);
    await this.drainOn(queues, what, limit, runs);
    return runs;
  }

  /** Drains the queues until listeners add no more jobs either. */
  private async drainOn(
    queues: readonly string[],
    what: string,
    limit: number,
    runs: JobRun[],
  ): Promise<void> {
    for (let before = -1; before < runs.length;) {
      before = runs.length;
      // oxlint-disable-next-line no-await-in-loop -- listeners may add jobs in each round
      await this.workers.drain(queues, what, limit, runs);
      // oxlint-disable-next-line no-await-in-loop -- see above
      await this.flushListeners();
    }
  }

  private async goTo(ms: number, what: string, options: AdvanceOptions = {}): Promise<JobRun[]> {
    const limit = limitOf(what, options);
    const runs: JobRun[] = [];
    const run = async () => {
      if (this.workers.isManual) await this.drainOn(this.workers.queues, what, limit, runs);
      else await this.idle();
    };
    await this.walk.to(ms, options.run === true ? run : undefined);
    await this.flushListeners();
    return runs;
  }

  private async clearOne(name: string): Promise<void> {
    await this.bench.engine.admin.obliterate(name, true);
    this.bench.recordsOf(name).clear();
    await this.declare((queue) => queue === name);
  }

  /** Declares the schedules of the code once, without renewing the declaration. */
  private async declare(which: (queue: string) => boolean): Promise<void> {
    const schedules = (this.runtime.prepared?.schedules ?? []).filter(({ queue }) => which(queue));
    const { owner, lease } = this.settings;
    const process = generateId(this.bench.clock.now());
    const declarer = new Declarer(this.bench.engine, { owner, leaseMs: lease.leaseMs, process });
    await declarer.start(schedules);
    await declarer.stop();
  }

  /** Resolves when listeners have received all events so far and `@OnQueueEvent` methods have ended. */
  private flushListeners(): Promise<void> {
    const { events } = this;
    const caughtUp = Promise.all(events.reader.queues().map((queue) => events.caughtUp(queue)));
    return within(
      LISTENERS_MS,
      caughtUp.then(() => this.listeners.idle()),
    );
  }
}

function limitOf(what: string, options: DrainOptions = {}): number {
  const { limit = DEFAULT_LIMIT } = options;
  return integer(1, 10_000_000)(limit, `${what}.limit`, refuse) ?? DEFAULT_LIMIT;
}

/** Waits until workers that run by themselves have nothing to do. */
async function awaitIdle(bench: TestBench, workers: ManualWorkers, timeoutMs: number): Promise<void> {
  if (workers.isManual) {
    throw new QueueTestingError(
      'idle(): no workers run here; run the waiting jobs with drain(), or use QueueTestingModule.forRoot({ autoStart: true })',
    );
  }
  const until = performance.now() + timeoutMs;
  for (;;) {
    const next = nextStir(bench);
    // oxlint-disable-next-line no-await-in-loop -- asked again each time something has changed
    const busy = await whatIsLeft(bench, workers.queues);
    const leftMs = until - performance.now();
    if (busy === '' || leftMs <= 0) {
      next.cancel();
      if (busy === '') return;
      throw new QueueTestingError(`idle(): after ${timeoutMs} ms there is still work: ${busy}`);
    }
    // oxlint-disable-next-line no-await-in-loop -- see above
    await next.within(leftMs);
  }
}

/** Describes the jobs that wait or run; `''` if there are none. */
async function whatIsLeft(bench: TestBench, queues: readonly string[]): Promise<string> {
  const counts = await Promise.all(
    queues.map(async (queue) => ({ queue, ...(await bench.engine.admin.counts(queue)) })),
  );
  return counts
    .map(({ queue, waiting, active, paused }) => ({ queue, active, waiting: paused ? 0 : waiting }))
    .filter(({ waiting, active }) => waiting + active > 0)
    .map(({ queue, waiting, active }) => `${active} running and ${waiting} waiting in queue '${queue}'`)
    .join(', ');
}

/** Waits for the next call that may change where jobs are. */
function nextStir(bench: TestBench) {
  let stop!: () => void;
  const stirred = new Promise<void>((resolve) => {
    stop = bench.onStir(resolve);
  });
  return {
    cancel: stop,
    async within(ms: number): Promise<void> {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
      await Promise.race([stirred, late]);
      clearTimeout(timer);
      stop();
    },
  };
}
