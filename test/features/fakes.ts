import type { DynamicModule, INestApplicationContext, LoggerService, ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect, onTestFinished } from 'vitest';
import { QUEUE_ENGINE, WORKER_SERVICES } from '#lib/decorators/metadata.js';
import type { PoolPlan, QueuePlan } from '#lib/handlers/discovery/handler.registry.js';
import type { EnqueueAnswer, EnqueueCall, LinkEvent, ServerWarning } from '#lib/contract/engine.js';
import { BootstrapError } from '#lib/errors.js';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import { QueueModule } from '#lib/module/queue.module.js';
import type { WorkerServices } from '#lib/module/queue.runtime.js';
import type { DrainReport, Pool } from '#lib/worker/worker-pool.js';
import { LIMITS } from '../scripts/support.js';

/** A gate that a handler waits for and the test opens. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Everything that happened, in order, in all fakes of one application. */
export type History = string[];

/**
 * The memory engine. It records when it is opened, used and closed. The test decides what its link and its server do.
 */
class WatchedEngine extends MemoryEngine {
  state: 'new' | 'open' | 'closed' = 'new';
  isThere = true;
  openError: Error | null = null;
  readonly listeners = new Set<(event: LinkEvent) => void>();
  private readonly warningListeners = new Set<(warning: ServerWarning) => void>();

  constructor(private readonly history: History) {
    super({ limitsOf: () => LIMITS });
  }

  override async open(): Promise<boolean> {
    this.history.push('engine opened');
    if (this.openError) throw this.openError;
    this.state = 'open';
    return this.isThere;
  }

  override async close(): Promise<void> {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.history.push('engine closed');
    await super.close();
  }

  override onLink(listener?: (event: LinkEvent) => void): () => void {
    if (listener) this.listeners.add(listener);
    return () => listener && this.listeners.delete(listener);
  }

  override onWarning(listener?: (warning: ServerWarning) => void): () => void {
    if (listener) this.warningListeners.add(listener);
    return () => listener && this.warningListeners.delete(listener);
  }

  warn(warning: ServerWarning): void {
    for (const listener of this.warningListeners) listener(warning);
  }

  override enqueue(queue: string, call: EnqueueCall): Promise<EnqueueAnswer> {
    this.history.push(`added to ${queue}`);
    return super.enqueue(queue, call);
  }
}

/** A pool that runs the jobs that the test gives it, through the handlers that discovery found. */
export class FakePool implements Pool {
  readonly queue: string;
  concurrency: number;
  state: 'new' | 'running' | 'paused' | 'drained' = 'new';
  /** Resolves when a drain begins, and when it has ended. */
  readonly draining: Promise<void>;
  readonly drained: Promise<void>;
  private tellDraining!: () => void;
  private tellDrained!: () => void;
  readonly runs = new Set<never>();
  private readonly calls = new Set<Promise<unknown>>();

  constructor(
    readonly plan: QueuePlan,
    private readonly history: History,
    readonly pool: PoolPlan,
  ) {
    this.queue = plan.queue;
    this.concurrency = pool.concurrency;
    this.draining = new Promise((resolve) => (this.tellDraining = resolve));
    this.drained = new Promise((resolve) => (this.tellDrained = resolve));
  }

  readonly shutdown = { timeoutMs: 25_000, graceMs: 1_000 };

  get running(): number {
    return this.calls.size;
  }

  /** Runs a job as if it had been claimed. */
  run(jobName: string, data: unknown = null): Promise<unknown> {
    const entry = this.plan.find(jobName);
    if (!entry) throw new Error(`no handler for ${jobName}`);
    const run = (async () => entry.run({ queue: this.queue, name: jobName, data } as never))();
    this.calls.add(run);
    void run.finally(() => this.calls.delete(run)).catch(() => undefined);
    return run;
  }

  start(): void {
    if (this.state === 'new') this.history.push(`${this.queue} started`);
    if (this.state !== 'paused') this.state = 'running';
  }

  pause(): void {
    this.state = 'paused';
  }

  resume(): void {
    this.state = 'running';
  }

  quiet(): void {
    this.pause();
  }

  async drain(): Promise<DrainReport> {
    this.history.push(`${this.queue} draining`);
    this.tellDraining();
    const finished = this.calls.size;
    await Promise.allSettled(this.calls);
    this.state = 'drained';
    this.history.push(`${this.queue} drained`);
    this.tellDrained();
    return { finished, released: [], endedAt: performance.now() };
  }
}

interface Fakes {
  readonly app: INestApplicationContext;
  readonly engine: WatchedEngine;
  readonly pools: Map<string, FakePool>;
  readonly history: History;
  readonly logs: { readonly level: string; readonly text: string }[];
  /** Rejects as the application would. */
  readonly init: () => Promise<void>;
  readonly pool: (queue: string) => FakePool;
}

interface FakeOptions {
  readonly history?: History;
  readonly makePool?: (plan: QueuePlan, history: History, pool: PoolPlan) => FakePool;
}

/** A real Nest application on the memory engine, with fake pools. It is not initialised yet. */
export async function compileApp(metadata: ModuleMetadata, options: FakeOptions = {}): Promise<Fakes> {
  const { history = [], makePool = (...plan) => new FakePool(...plan) } = options;
  const engine = new WatchedEngine(history);
  const pools = new Map<string, FakePool>();
  const logs: Fakes['logs'] = [];
  const app = await Test.createTestingModule(metadata)
    .setLogger(collector(logs))
    .overrideProvider(QUEUE_ENGINE)
    .useValue(engine)
    .overrideProvider(WORKER_SERVICES)
    .useValue((): WorkerServices => ({
      declare: async () => undefined,
      withdraw: async () => undefined,
      createPools: (plan) =>
        plan.queues.map((queue) => {
          const pool = makePool(queue, history, plan);
          pools.set(queue.queue, pool);
          return pool;
        }),
      removePool: async () => undefined,
      report: () => undefined,
      stop: async () => void history.push('services stopped'),
    }))
    .compile();
  let failed = false;
  // Nest 11 does not close an application that failed to start. A test closes it where that matters.
  onTestFinished(() => (failed ? undefined : app.close()));
  return {
    app,
    engine,
    pools,
    history,
    logs,
    init: async () => {
      failed = true;
      await app.init();
      failed = false;
    },
    pool: (queue) => pools.get(queue)!,
  };
}

/** The same with `forRoot` and these queues, up and running. */
export async function startApp(
  queues: readonly string[],
  metadata: ModuleMetadata,
  options: FakeOptions & { root?: DynamicModule } = {},
): Promise<Fakes> {
  const fakes = await compileApp(withQueues(queues, metadata, options.root), options);
  await fakes.init();
  return fakes;
}

/** The faults for which an application with this metadata does not start. Its engine was never opened. */
export async function bootFaults(metadata: ModuleMetadata): Promise<readonly string[]> {
  const { init, history } = await compileApp(metadata);
  const error = await init().then(
    () => expect.fail('the application started'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(BootstrapError);
  expect(history).toEqual(['engine closed']);
  return (error as BootstrapError).faults;
}

export function withQueues(
  queues: readonly string[],
  metadata: ModuleMetadata,
  root: DynamicModule = QueueModule.forRoot(),
): ModuleMetadata {
  const registered = QueueModule.registerQueue(...queues.map((name) => ({ name })));
  return { ...metadata, imports: [root, registered, ...(metadata.imports ?? [])] };
}

function collector(logs: Fakes['logs']): LoggerService {
  const at = (level: string) => (message: unknown) => void logs.push({ level, text: String(message) });
  return {
    log: at('log'),
    warn: at('warn'),
    error: at('error'),
    debug: at('debug'),
    verbose: at('verbose'),
    fatal: at('fatal'),
  };
}
