import type { ModuleMetadata, Provider, Type } from '@nestjs/common';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { getQueueToken, QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { Processor, type ProcessorQueues } from '#lib/decorators/processor.decorator.js';
import { LETTERED_JOBS, QueueKeys } from '#lib/engine/keys.js';
import type { EndEvent, QueueEvent } from '#lib/events/queue-event.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import type { Job } from '#lib/job/job.js';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import { MemoryStore } from '#lib/memory/memory-store.js';
import type { QueueModuleOptions, QueueOptions } from '#lib/options/module-options.js';
import type { ProcessorOptions } from '#lib/options/worker-options.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRegistry } from '#lib/module/queue.registry.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import type { TestingModuleBuilder } from '@nestjs/testing';
import { describe, it } from 'vitest';
import { bootApp, type BootedApp } from './app.js';
import { atEnd } from './cleanup.js';
import type { TestRedis } from './redis.js';
import { collect, until, type Collected } from './wait.js';

/** How long a test waits for a signal. A busy machine must not make it fail. */
export const PATIENT = { timeout: 15_000 } as const;

export type Handlers = Readonly<Record<string, (job: Job<any>) => unknown>>;

/** A handler that records the data of jobs in the order in which they began. */
export function recorder(): { readonly ran: unknown[]; readonly handlers: Handlers } {
  const ran: unknown[] = [];
  return { ran, handlers: { job: ({ data }) => void ran.push(data) } };
}

/** Whether no job of the queue waits, is delayed or runs. */
export const isOver = (app: QueueApp) => async () => {
  const { waiting, delayed, active } = await app.queue.counts();
  return waiting + delayed + active === 0;
};

export interface QueueAppOptions extends Pick<ModuleMetadata, 'imports'> {
  /** Options of the queue `work`, which every application has. */
  readonly queue?: Omit<QueueOptions, 'name'>;
  /** Further queues. */
  readonly queues?: readonly QueueOptions[];
  /** Options of `forRoot`; connection and prefix are set by the test. */
  readonly root?: QueueModuleOptions;
  /**
   * Handlers of the queue `work` by job name, `*` for every other name. An application without handlers only adds jobs.
   */
  readonly handlers?: Handlers;
  /** @default 10 */
  readonly concurrency?: number;
  readonly providers?: readonly Provider[];
  /** A log for a test with several applications: Nest has one logger per process. @default a new one */
  readonly logs?: Logs;
  /** Collect the events of the queue `work`, from before the first job. @default true */
  readonly watch?: boolean;
}

export interface QueueApp extends BootedApp {
  /** The producer of the queue `work`. */
  readonly queue: Queue;
  readonly queueOf: (name: string) => Queue;
  readonly producer: QueueProducer;
  readonly events: QueueEvents;
  readonly runtime: QueueRuntime;
  readonly logs: Logs;
  /** Every event of the queue `work`, unless `watch` is false. */
  readonly said: Collected<QueueEvent>;
  /** Resolves with the event that ends this job. */
  readonly ended: (id: string) => Promise<EndEvent>;
}

export async function scheduleIdsOf({ queue }: Pick<QueueApp, 'queue'>): Promise<string[]> {
  return (await queue.schedules.list()).map(({ id }) => id).toSorted();
}

/** Adds a job and waits for its end: the type, and the kept result or the error. */
export async function outcomeOf({ queue, ended }: QueueApp, name: string, data: unknown = null) {
  const { id } = await queue.add(name, data);
  const { type } = await ended(id);
  const job = await queue.get(id);
  return type === 'dead' ? [type, job?.failure?.name, job?.failure?.message] : [type, job?.result];
}

/** The same for all applications: Node warns if there are more than ten listeners. */
const exit = () => process.exit(143);

/** A running Nest application with one queue named `work` on the Redis of the test. */
export async function bootQueue(
  redis: Pick<TestRedis, 'url' | 'prefix'>,
  options: QueueAppOptions = {},
): Promise<QueueApp> {
  const { queue, queues = [], root, handlers, concurrency, providers = [], imports = [] } = options;
  const logs = options.logs ?? new Logs();
  const worker = handlers && processorOf('work', handlers, concurrency === undefined ? {} : { concurrency });
  // Without a listener, Godwit warns after 3 s, which tests that expect no warning would reach on a busy machine.
  if (!process.listeners('SIGTERM').includes(exit)) {
    process.on('SIGTERM', exit);
    atEnd(() => void process.off('SIGTERM', exit));
  }
  const booted = await bootApp({
    imports: [
      QueueModule.forRoot({
        connection: redis.url,
        prefix: redis.prefix,
        // A test that fails during a run must not wait half a minute for its handler.
        shutdown: { timeout: '3s', grace: '100ms' },
        // Tests count warnings, and let jobs fail on purpose.
        log: { failures: false, deaths: false },
        ...root,
      }),
      QueueModule.registerQueue({ name: 'work', ...queue }, ...queues),
      ...imports,
    ],
    providers: [...providers, ...(worker ? [worker] : [])],
    logger: logs,
    ...(inMemory() ? { override: (module: TestingModuleBuilder) => sharingStore(module, redis.prefix) } : {}),
  });
  const { get } = booted;
  const queueOf = (name: string) => get<Queue>(getQueueToken(name));
  const events = get(QueueEvents);
  let said: Collected<QueueEvent> | undefined;
  if (options.watch ?? true) {
    said = collect(events.of('work'));
    await events.ready('work');
  }
  const watched = () => {
    if (!said) throw new Error('the application does not watch its events');
    return said;
  };
  return {
    ...booted,
    queue: queueOf('work'),
    queueOf,
    producer: get(QueueProducer),
    events,
    runtime: get(QueueRuntime),
    logs,
    get said() {
      return watched();
    },
    ended: (id) =>
      watched().first((event) => event.jobId === id && isEnd(event), {
        ...PATIENT,
        what: `the end of job ${JSON.stringify(id)}`,
      }) as Promise<EndEvent>,
  };
}

/** Whether applications run without Redis: `test/memory/features*.spec.ts` runs some specs in this way. */
function inMemory(): boolean {
  return process.env['GODWIT_ENGINE'] === 'memory';
}

type Define = (name: string, body: () => any, timeout?: number) => void;

/** A test that reads or writes Redis directly; skipped without Redis. */
export const itOnRedis: Define = inMemory() ? () => {} : it;
export const describeOnRedis: Define = inMemory() ? () => {} : describe;

const stores = new Map<string, MemoryStore>();

/** The store that all applications of a test without Redis share. */
function sharingStore(module: TestingModuleBuilder, prefix: string): TestingModuleBuilder {
  const store = stores.get(prefix) ?? new MemoryStore();
  stores.set(prefix, store);
  return module.overrideProvider(QUEUE_ENGINE).useFactory({
    factory: (registry: QueueRegistry) => {
      const limitsOf = (queue: string) => registry.limitsOf(queue);
      return new MemoryEngine({ store, limitsOf });
    },
    inject: [QueueRegistry],
  });
}

/** A class with one decorated method per handler. */
export function processorOf(
  queues: ProcessorQueues,
  handlers: Handlers,
  options: ProcessorOptions = {},
): Type {
  class TestProcessor {}
  const prototype = TestProcessor.prototype as Record<string, any>;
  for (const [name, handler] of Object.entries(handlers)) {
    const key = `handle ${name}`;
    const value = (job: Job) => handler(job);
    Object.defineProperty(prototype, key, { value, configurable: true, writable: true });
    const mark = name === '*' ? Handle() : Handle(name);
    mark(prototype, key, Object.getOwnPropertyDescriptor(prototype, key)!);
  }
  Processor(queues, options)(TestProcessor);
  return TestProcessor;
}

interface LogLine {
  readonly level: 'log' | 'warn' | 'error' | 'debug' | 'verbose' | 'fatal';
  readonly text: string;
}

/** The lines that the applications of a test wrote to Nest's logger. */
export class Logs {
  readonly lines: LogLine[] = [];

  log = (text: unknown) => this.keep('log', text);
  warn = (text: unknown) => this.keep('warn', text);
  error = (text: unknown) => this.keep('error', text);
  debug = (text: unknown) => this.keep('debug', text);
  verbose = (text: unknown) => this.keep('verbose', text);
  fatal = (text: unknown) => this.keep('fatal', text);

  /** Warnings and errors. */
  get complaints(): readonly string[] {
    return this.lines.filter(({ level }) => level === 'warn' || level === 'error').map(({ text }) => text);
  }

  /** Resolves with the first warning or error that matches, past or future. */
  complaint(match: RegExp): Promise<string> {
    return until(() => this.complaints.find((text) => match.test(text)), {
      ...PATIENT,
      what: () => `a warning like ${match.source}, got ${JSON.stringify(this.complaints)}`,
    });
  }

  private keep(level: LogLine['level'], text: unknown): void {
    this.lines.push({ level, text: String(text) });
  }
}

/** A key of a queue by its last word, for a test that reads Redis or corrupts it on purpose. */
export function keyOf(redis: TestRedis, kind: string, queue = 'work'): string {
  return `{${redis.prefix}:${queue}}:${kind}`;
}

/** The HASH that has the body of this job. */
export function bodiesOf(redis: TestRedis, id: string): string {
  return new QueueKeys(redis.prefix, 'work').bodies(id);
}

/** How many jobs have a body. */
export async function bodyCount(redis: TestRedis): Promise<number> {
  const { fixed } = new QueueKeys(redis.prefix, 'work');
  const kinds = ['jobs', ...LETTERED_JOBS] as const;
  const each = await Promise.all(kinds.map((kind) => redis.admin.hlen(fixed[kind])));
  return each.reduce((sum, count) => sum + count, 0);
}

/** An event without the fields that differ from run to run. */
export function brief({ eventId: _, at: __, queue: ___, ...event }: QueueEvent): Record<string, unknown> {
  const fields: Record<string, unknown> = { ...event };
  delete fields['durationUs'];
  return fields;
}

function isEnd(event: QueueEvent): boolean {
  return ['completed', 'dead', 'removed', 'cancelled'].includes(event.type);
}
