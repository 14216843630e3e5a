import { outside } from '../contract/outside.js';
import { Log } from '../contract/log.js';
import type { PoolPlan } from '../handlers/discovery/handler.registry.js';
import type { QueueEngine, ServerWarning } from '../contract/engine.js';
import { LAST_WORDS_MS, STOP_MS, within } from '../contract/retry.js';
import type { ProcessOrder, ProcessState } from '../contract/process-verbs.js';
import { BootstrapError, InvalidOptionError, NotRunningError, UnknownQueueError } from '../errors.js';
import { messageOf, stackOf } from '../errors/thrown.js';
import { checkQueueName } from '../job/job-id.js';
import { counted, namedQueues } from '../job/text.js';
import type { QueueSchedules } from '../schedule/declarer.js';
import { describePool, describeWaiting, warnWithoutShutdownHooks } from './notices.js';
import { planWorker, type JobHandlers, type QueueWorker, type WorkOptions } from './run-time-worker.js';
import { refuse } from '../options/check.js';
import { readConcurrency, type ResolvedLog, type WrapHook } from '../options/worker-options.js';
import { VERSION } from '../worker/registrar.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { DrainReport, Pool } from '../worker/worker-pool.js';

/**
 * `new`: not started yet. `draining`: running jobs finish, no new ones are claimed. `stopped`: no workers, but jobs can still be
 * added.
 */
export type RuntimeState = 'new' | 'running' | 'draining' | 'stopped';

/** How much this process runs of one queue. */
export interface WorkLoad {
  readonly queue: string;
  readonly running: number;
  /** Age of the longest run. 0 without runs. */
  readonly oldestMs: number;
  /** The names of the queues that share slots. */
  readonly pool: string;
  readonly slots: number;
}

/** The options of `forRoot` that the runtime needs. */
interface RuntimeOptions {
  readonly role: 'producer' | 'worker' | 'both';
  readonly autoStart: boolean;
  readonly shutdown: { readonly timeoutMs: number; readonly graceMs: number };
  readonly log: ResolvedLog;
  readonly wrap: readonly WrapHook[];
}

/** Everything that exists while the workers run: the pools, and what they share. */
export interface WorkerServices {
  /** Creates a pool for each queue of the plan. The pools share slots, and claim nothing before their `start`. */
  createPools(plan: PoolPlan): readonly Pool[];
  /** Removes the drained pool of a queue while the others continue, and what it declared. Never rejects. */
  removePool(queue: string): Promise<void>;
  /** Whether there is work besides that of the pools, such as dispatchers. */
  readonly hasMore?: boolean;
  /**
   * Registers the schedules that handlers declare, and the limits of these queues. Failures are retried in the background. Never
   * rejects.
   */
  declare(schedules: readonly QueueSchedules[]): Promise<void>;
  /** Withdraws the schedules before the drain, so that other processes know at once. Never rejects. */
  withdraw(): Promise<void>;
  /** Updates the record that `QueueInspector` reads. */
  report(state: ProcessState): void;
  /** Stops everything. Called when all pools are drained. */
  stop(): Promise<void>;
}

/**
 * The workers of this process. The application starts and stops them. Inject it to do so yourself (`autoStart: false`), or to
 * pause this process.
 *
 * @example
 * const runtime = app.get(QueueRuntime); // of an application with forRoot({ autoStart: false })
 * await runtime.start();
 * runtime.pause('email'); // in this process
 */
export class QueueRuntime {
  private readonly logger = new Log('QueueModule');
  private readonly pools = new Map<string, Pool>();
  /** Includes quiet queues. */
  private readonly paused = new Set<string>();
  private readonly quieted = new Set<string>();
  /** Whether queues that are added later are quiet too. */
  private isAllQuiet = false;
  /** Concurrencies that were set at run time. */
  private readonly concurrencies = new Map<PoolPlan, number>();
  private services: WorkerServices | null = null;
  private plans: readonly PoolPlan[] | null = null;
  /** Plans of workers that are being stopped one by one. */
  private readonly leaving = new Set<PoolPlan>();
  private schedules: readonly QueueSchedules[] = [];
  private current: RuntimeState = 'new';
  private opening: Promise<void> | null = null;
  private starting: Promise<void> | null = null;
  private stopping: Promise<void> | null = null;
  private closing: Promise<void> | null = null;
  private shuttingDown = false;
  /** How often `stop` was called. A start that is in progress ends if it was called since. */
  private stops = 0;
  /** `stops` when the start in progress was asked for. */
  private stopsAtStart = 0;
  private endOfStop = 0;
  /** Whether Redis answered at startup. */
  private isConnected = true;
  private cancelHookWarning: (() => void) | null = null;
  private readonly seenWarnings: ServerWarning[] = [];

  /** @internal */
  constructor(
    private readonly engine: QueueEngine,
    private readonly createServices: (obey: (order: ProcessOrder) => void) => WorkerServices,
    private readonly options: RuntimeOptions,
    private readonly queues: () => readonly string[],
    /** Options of a queue. A queue that is not registered gets the defaults. */
    private readonly openQueue: (queue: string) => ResolvedQueueOptions,
    /** Redis with its address, as in log lines. */
    private readonly redis: () => string,
  ) {}

  /** State of the workers. Jobs can be added from the start of the application to its end. */
  get state(): RuntimeState {
    return this.current;
  }

  /**
   * The state of the workers of each queue that this process has a processor for, or `paused` or `quiet`. Empty if it has none,
   * as with the role `producer`.
   */
  get workers(): readonly {
    /** Name of the queue. */
    readonly queue: string;
    /** The state of the workers of this process for the queue. */
    readonly state: RuntimeState | 'paused' | 'quiet';
  }[] {
    if (this.options.role === 'producer') return [];
    const queues = (this.plans ?? []).flatMap((plan) => plan.queues.map(({ queue }) => queue));
    const stateOf = (queue: string) => {
      if (this.current !== 'running' || !this.paused.has(queue)) return this.current;
      return this.quieted.has(queue) ? 'quiet' : 'paused';
    };
    return queues.map((queue) => ({ queue, state: stateOf(queue) }));
  }

  /**
   * Settings of the server that can lose jobs or make adds fail. Each code is listed and logged once. More warnings may come
   * while the application runs: after a failover, or if Redis was unreachable at startup.
   */
  get warnings(): readonly ServerWarning[] {
    return [...this.seenWarnings];
  }

  /**
   * Starts the workers of all processors. Does nothing while they run. After `stop` it starts them again. With the role
   * `producer` there are none.
   *
   * @throws {BootstrapError} before the application is initialised.
   * @throws {NotRunningError} once the application shuts down.
   * @throws {UnsupportedRedisError} when the server is too old.
   * @throws {QueueFormatError} when a newer version has written a queue in a format that this one does not know.
   */
  start(): Promise<void> {
    return this.startAfter(this.stops);
  }

  /** Starts the workers, unless `stop` is called again. */
  private startAfter(stops: number): Promise<void> {
    const again = () => this.startAfter(stops);
    if (this.starting && this.stopsAtStart !== stops) return this.starting.then(again, again);
    this.stopsAtStart = stops;
    this.starting ??= outside(() => this.bringUp(stops)).finally(() => (this.starting = null));
    return this.starting;
  }

  /**
   * Stops the workers: claims no more jobs, gives back jobs that have not started, lets running jobs finish within
   * `shutdown.timeout`, then aborts their signals and gives the rest back. Adding jobs and events still work. Never rejects. May
   * be called twice, and before `start`. If a handler awaits it, it waits for that handler until the timeout.
   */
  stop(): Promise<void> {
    this.stops += 1;
    this.stopping ??= this.bringDown().finally(() => (this.stopping = null));
    return this.stopping;
  }

  /**
   * Claims no more jobs for one queue or for all, in this process only. Running jobs continue. The pause lasts until `resume`,
   * also across `stop` and `start`. To pause a queue for all processes use `Queue.pause`.
   *
   * @throws {UnknownQueueError} when the queue is not registered.
   */
  pause(queue?: string): void {
    for (const name of this.named(queue)) {
      this.paused.add(name);
      this.pools.get(name)?.pause();
    }
    this.reportState();
  }

  /**
   * Claims no more jobs for one queue or for all, in this process only, until the process ends. Use it before a deploy replaces
   * the process. Jobs that have not started are given back, and running jobs continue. Neither `resume` nor `stop` and `start`
   * end it. Adding jobs still works. With no argument, it includes queues that the process begins to work on later.
   *
   * @throws {UnknownQueueError} when the queue is not registered.
   * @example
   * process.on('SIGUSR2', () => runtime.quiet());
   */
  quiet(queue?: string): void {
    const names = this.named(queue);
    const isNew = queue === undefined ? !this.isAllQuiet : !this.quieted.has(queue);
    if (queue === undefined) this.isAllQuiet = true;
    for (const name of names) this.makeQuiet(name);
    const place = queue === undefined ? '' : `queue '${queue}': `;
    if (isNew) this.logger.log(`${place}this process claims no more jobs until it ends`);
    this.reportState();
  }

  private makeQuiet(queue: string): void {
    this.quieted.add(queue);
    this.paused.add(queue);
    this.pools.get(queue)?.quiet();
  }

  /**
   * Ends a `pause`. Queues that are `quiet` stay so.
   *
   * @throws {UnknownQueueError} when the queue is not registered.
   */
  resume(queue?: string): void {
    for (const name of this.named(queue)) {
      if (this.quieted.has(name)) continue;
      this.paused.delete(name);
      if (this.current !== 'running') continue;
      const pool = this.pools.get(name);
      // A pool that was paused before the start has not been started yet.
      outside(() => {
        pool?.start();
        pool?.resume();
      });
    }
    this.reportState();
  }

  /**
   * How many jobs this process runs at once for the queue. Queues of one `@Processor` share this number.
   *
   * @throws {UnknownQueueError} when the queue is not registered.
   * @throws {InvalidOptionError} when this process has no processor for it.
   */
  concurrency(queue: string): number {
    const plan = this.planOf(queue, 'concurrency()');
    return this.concurrencies.get(plan) ?? plan.concurrency;
  }

  /**
   * Changes how many jobs this process runs at once for the queue, and for queues of the same `@Processor`. With a lower number,
   * no further job is claimed until fewer run. Claimed jobs that have not started are given back, and running jobs continue. With
   * a higher number, more jobs are claimed at once. The change lasts as long as the process, also across `stop` and `start`.
   *
   * @param concurrency 1 to 10,000; to run none, `pause` the queue.
   * @throws {UnknownQueueError} when the queue is not registered.
   * @throws {InvalidOptionError} when this process has no processor for it, or the number is not valid.
   * @example
   * runtime.setConcurrency('media', 4);
   */
  setConcurrency(queue: string, concurrency: number): void {
    const plan = this.planOf(queue, 'setConcurrency()');
    const place = `setConcurrency('${queue}')`;
    if (concurrency === 0)
      throw new InvalidOptionError(
        place,
        `at least 1; to run no jobs, use QueueRuntime.pause('${queue}')`,
        0,
      );
    readConcurrency(concurrency, place, refuse);
    const before = this.concurrency(queue);
    if (concurrency === before) return;
    this.concurrencies.set(plan, concurrency);
    // All queues of the plan share these slots.
    const pool = this.pools.get(queue);
    if (pool) pool.concurrency = concurrency;
    const queues = namedQueues(plan.queues.map((one) => one.queue));
    this.logger.log(`${queues}: concurrency ${concurrency}, before ${before}`);
    this.reportState();
  }

  /**
   * Starts a worker for a queue that no processor of this process works on. If no module registers the queue, it gets the
   * defaults of `forRoot`. Hooks of `forRoot().wrap` apply to the handlers; guards, pipes, interceptors and filters do not. The
   * worker stops with the application, or with `stop()` of the returned object. If the workers do not run yet, it starts with
   * them.
   *
   * @throws {InvalidOptionError} if this process works on the queue already, if its role is `producer`, or if an argument is not valid.
   * @throws {InvalidQueueNameError | InvalidJobNameError}
   * @throws {BootstrapError} before the application is initialised.
   * @throws {NotRunningError} once the application shuts down.
   * @throws {QueueFormatError} when a newer version has written the queue in a format that this one does not know.
   * @example
   * const worker = await runtime.work('tenant-42', { welcome: (job) => `hello ${job.data.to}` }, { concurrency: 2 });
   * await worker.stop();
   */
  async work(queue: string, handlers: JobHandlers, options: WorkOptions = {}): Promise<QueueWorker> {
    const place = `work('${checkQueueName(queue)}')`;
    if (this.options.role === 'producer')
      throw new InvalidOptionError(place, `a process whose forRoot().role is not 'producer'`, queue);
    this.refuseWhenShuttingDown('work');
    const { plans } = this;
    if (plans === null)
      throw new BootstrapError([
        `QueueRuntime.${place} was called before the application was initialised; await app.init() first, or call it in onApplicationBootstrap()`,
      ]);
    if ([...plans, ...this.leaving].some((plan) => plan.queues.some((one) => one.queue === queue)))
      throw new InvalidOptionError(
        place,
        `a queue that this process does not work on already; await stop() of its worker first`,
        queue,
      );
    const plan = planWorker(this.openQueue(queue), handlers, options, this.options.wrap);
    // Set before the first await, so that a second call for the queue is refused.
    this.plans = [...plans, plan];
    try {
      await this.engine.checkQueue(queue);
    } catch (error) {
      await this.leave(plan);
      throw error;
    }
    await this.join([plan]);
    let stopping: Promise<void> | undefined;
    const stop = () => (stopping ??= this.leave(plan));
    return { queue, stop, [Symbol.asyncDispose]: stop };
  }

  /** Starts the workers of these plans if the others run. If not, they start with the others. */
  private async join(plans: readonly PoolPlan[]): Promise<void> {
    const { services } = this;
    if (services === null || this.current !== 'running') return;
    await services.declare(this.declaredBy(plans));
    // After a stop, another start has begun to start these workers, or will.
    if (this.services !== services || this.current !== 'running') return;
    this.startPools(plans.filter((plan) => this.plans!.includes(plan)));
  }

  private declaredBy(plans: readonly PoolPlan[]): QueueSchedules[] {
    const known = new Map(this.schedules.map((one) => [one.queue, one]));
    const queues = plans.flatMap((plan) => plan.queues.map(({ queue }) => queue));
    return queues.map((queue) => known.get(queue) ?? { queue, schedules: [] });
  }

  /** Stops the workers of one plan. Never rejects. */
  private async leave(plan: PoolPlan): Promise<void> {
    this.leaving.add(plan);
    this.forget(plan);
    await this.drainPlan(plan);
    for (const { queue } of plan.queues) this.pools.delete(queue);
    const removals = plan.queues.map(async ({ queue }) => this.services?.removePool(queue));
    await within(STOP_MS, Promise.all(removals));
    this.leaving.delete(plan);
    this.reportState();
  }

  private forget(plan: PoolPlan): void {
    this.plans = this.plans!.filter((one) => one !== plan);
    this.concurrencies.delete(plan);
  }

  private planOf(queue: string, place: string): PoolPlan {
    this.named(queue);
    const plan = this.plans?.find(({ queues }) => queues.some((one) => one.queue === queue));
    if (plan === undefined)
      throw new InvalidOptionError(place, 'a queue that this process has a processor for', queue);
    return plan;
  }

  /** @internal Takes the plans of the discovery. */
  prepare(plans: readonly PoolPlan[], schedules: readonly QueueSchedules[]): void {
    this.plans = plans;
    this.schedules = schedules;
  }

  /**
   * @internal Adds the processors of a lazily loaded module: their handlers join the existing pools of their queues; pools of other
   * queues, with their schedules, start if the workers run.
   */
  async extend(plans: readonly PoolPlan[], schedules: readonly QueueSchedules[]): Promise<void> {
    const known = new Map((this.plans ?? []).flatMap(({ queues }) => queues.map((one) => [one.queue, one])));
    for (const plan of plans.flatMap(({ queues }) => queues)) known.get(plan.queue)?.add(plan);
    const fresh = plans.filter(({ queues }) => queues.every(({ queue }) => !known.has(queue)));
    const ofFresh = new Set(fresh.flatMap(({ queues }) => queues.map(({ queue }) => queue)));
    const declared = schedules.filter(({ queue }) => ofFresh.has(queue));
    this.plans = [...(this.plans ?? []), ...fresh];
    this.schedules = [...this.schedules, ...declared];
    if (fresh.length > 0) await this.join(fresh);
  }

  /** @internal The plans of the discovery; null before the application is initialised. */
  get prepared(): {
    readonly plans: readonly PoolPlan[];
    readonly schedules: readonly QueueSchedules[];
  } | null {
    return this.plans && { plans: this.plans, schedules: this.schedules };
  }

  /** @internal The jobs that the pools of this process run now. */
  get load(): readonly WorkLoad[] {
    return (this.plans ?? []).flatMap(({ queues }) =>
      queues.flatMap(({ queue }) => {
        const pool = this.pools.get(queue);
        if (!pool) return [];
        const [oldest] = pool.runs;
        const oldestMs = oldest ? performance.now() - oldest.begunAt : 0;
        const names = queues.map((one) => one.queue).join(' ');
        return [{ queue, running: pool.runs.size, oldestMs, pool: names, slots: pool.concurrency }];
      }),
    );
  }

  /** @internal Connects; producers can be used from now on. */
  open(): Promise<void> {
    this.opening ??= outside(() => this.openOnce());
    return this.opening;
  }

  /** @internal Starts the workers, unless `autoStart` is false. */
  async boot(): Promise<void> {
    if (this.options.autoStart && this.current === 'new') await this.start();
  }

  /** @internal Stops permanently: the application shuts down. */
  shutDown(): Promise<void> {
    this.shuttingDown = true;
    this.cancelHookWarning?.();
    return this.stop();
  }

  /**
   * @internal The latest time (by `performance.now()`) at which the last stop is over, even if the store does not reply. Leases
   * and expiry times then do what the calls would have done.
   */
  get stopsBy(): number {
    return this.endOfStop;
  }

  /** @internal Closes the connections. Never rejects. */
  close(): Promise<void> {
    this.closing ??= this.shutDown()
      .then(() => this.engine.close())
      .catch((error: unknown) => this.logFailure('closing the connections', error));
    return this.closing;
  }

  private async bringUp(stops: number): Promise<void> {
    if (this.stopping) await this.stopping;
    this.refuseWhenShuttingDown();
    if (this.current === 'running' || this.stops !== stops) return;
    if (this.plans === null) {
      throw new BootstrapError([
        'QueueRuntime.start() was called before the application was initialised; await app.init() first',
      ]);
    }
    await this.open();
    this.refuseWhenShuttingDown();
    if (this.stops !== stops) return;
    this.current = 'running';
    if (this.options.role === 'producer') return;
    this.services = this.createServices(({ kind, queue }) => this[kind](queue ?? undefined));
    const declaring = this.services.declare(this.declaredBy(this.plans));
    // If Redis is unreachable, the schedules are registered when it is back.
    if (this.isConnected) await declaring;
    if (this.stops !== stops) return;
    // Workers may have been added and stopped meanwhile.
    this.startPools(this.plans);
  }

  /** The plans with the concurrencies that were set at run time. */
  private asSet(plans: readonly PoolPlan[]): readonly PoolPlan[] {
    return plans.map((plan) => ({ ...plan, concurrency: this.concurrencies.get(plan) ?? plan.concurrency }));
  }

  /** Starts the pools of these plans, except those that run already. */
  private startPools(plans: readonly PoolPlan[]): void {
    const fresh = plans.filter(({ queues }) => queues.every(({ queue }) => !this.pools.has(queue)));
    outside(() => {
      for (const pool of this.asSet(fresh).flatMap((plan) => this.services!.createPools(plan))) {
        this.pools.set(pool.queue, pool);
        if (this.isAllQuiet || this.quieted.has(pool.queue)) this.makeQuiet(pool.queue);
        if (!this.paused.has(pool.queue)) pool.start();
      }
      this.reportState();
    });
    this.logStarted(fresh);
  }

  private async bringDown(): Promise<void> {
    // Each pool ends after its own times. Everything that is shared waits for the last pool.
    const times = this.pools.size > 0 ? [...this.pools.values()] : [this.options];
    const longestMs = Math.max(...times.map(({ shutdown }) => shutdown.timeoutMs + shutdown.graceMs));
    this.endOfStop = performance.now() + longestMs + LAST_WORDS_MS;
    if (this.starting) await within(STOP_MS, this.starting);
    const withdrawn = this.services?.withdraw();
    let endedAt = performance.now();
    if (this.current === 'running') {
      this.current = 'draining';
      endedAt = Math.max(endedAt, ...(await this.drainAll()));
    }
    this.endOfStop = Math.min(this.endOfStop, endedAt + STOP_MS);
    const stopped = this.services
      ?.stop()
      .catch((error: unknown) => this.logFailure('stopping the workers', error));
    await within(Math.max(0, this.endOfStop - performance.now()), Promise.all([withdrawn, stopped]));
    this.services = null;
    this.current = 'stopped';
  }

  private async drainAll(): Promise<number[]> {
    this.reportState();
    const waiting = this.options.log.stop && describeWaiting([...this.pools.values()]);
    if (waiting) this.logger.log(waiting);
    const plans = [...(this.plans ?? []), ...this.leaving];
    const ends = await Promise.all(plans.map((plan) => this.drainPlan(plan)));
    this.pools.clear();
    return ends;
  }

  /** Returns when the last handler had ended. Never rejects. */
  private async drainPlan({ queues }: PoolPlan): Promise<number> {
    const names = queues.map(({ queue }) => queue).filter((queue) => this.pools.has(queue));
    try {
      const reports = await Promise.all(names.map((queue) => this.pools.get(queue)!.drain()));
      if (names.length > 0) this.logDrained(names, reports);
      return Math.max(0, ...reports.map(({ endedAt }) => endedAt));
    } catch (error) {
      this.logFailure(`draining ${namedQueues(names)}`, error);
      return performance.now();
    }
  }

  private async openOnce(): Promise<void> {
    try {
      this.engine.onWarning((warning) => {
        this.seenWarnings.push(warning);
        this.logger.warn(warning.message);
      });
      this.isConnected = await this.engine.open();
      if (!this.isConnected)
        this.logger.error(`${this.redis()} is not reachable yet; retrying. Jobs start when it answers`);
    } catch (error) {
      // Half-open connections would keep the process alive although it failed to start.
      await this.engine.close().catch(() => undefined);
      throw error;
    }
  }

  private reportState(): void {
    if (this.pools.size === 0) return;
    const areAll = (some: ReadonlySet<string>) => [...this.pools.keys()].every((queue) => some.has(queue));
    const working = areAll(this.quieted) ? 'quiet' : areAll(this.paused) ? 'paused' : 'running';
    this.services?.report(this.current === 'draining' ? 'draining' : working);
  }

  private named(queue: string | undefined): readonly string[] {
    const known = this.queues();
    if (queue === undefined) return known;
    if (!known.includes(queue)) throw new UnknownQueueError(checkQueueName(queue), known);
    return [queue];
  }

  private refuseWhenShuttingDown(verb = 'start'): void {
    if (this.shuttingDown) throw new NotRunningError(verb);
  }

  private logStarted(plans: readonly PoolPlan[]): void {
    const pools = this.asSet(plans).map((plan) => describePool(plan, this.paused));
    if (pools.length > 0) {
      const { server } = this.engine.processes;
      const on = server === null ? ', not yet connected to Redis' : ` on ${server}`;
      if (this.options.log.start)
        this.logger.log(`workers started: ${pools.join(', ')}; godwit ${VERSION}${on}`);
      this.cancelHookWarning ??= warnWithoutShutdownHooks(this.logger);
    } else if (this.options.role === 'worker' && this.pools.size === 0 && !this.services?.hasMore)
      this.logger.warn(
        `forRoot().role is 'worker', but no module has a processor in providers: this process runs no jobs`,
      );
  }

  private logDrained(queues: readonly string[], reports: readonly DrainReport[]): void {
    if (!this.options.log.stop) return;
    const finished = reports.reduce((sum, report) => sum + report.finished, 0);
    const released = reports.reduce((sum, report) => sum + report.released.length, 0);
    this.logger.log(
      `${namedQueues(queues)} stopped: ${counted(finished, 'running job')} finished meanwhile, ${released} given back`,
    );
  }

  private logFailure(what: string, error: unknown): void {
    this.logger.error(`${what}: ${messageOf(error)}`, stackOf(error));
  }
}
