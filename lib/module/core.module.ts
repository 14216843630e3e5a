import {
  Global,
  Inject,
  Logger,
  Module,
  Optional,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import {
  ApplicationConfig,
  DiscoveryService,
  ExternalContextCreator,
  LazyModuleLoader,
  ModulesContainer,
  MetadataScanner,
} from '@nestjs/core';
import {
  QUEUE_ENGINE,
  QUEUE_HANDLES,
  ROOT_OPTIONS,
  SETTINGS,
  SUBSTITUTE,
  WORKER_SERVICES,
  namedRootToken,
} from '../decorators/metadata.js';
import { Drain, drainBeforeDestroy } from '../handlers/discovery/drain-hook.js';
import { faults, warnings } from '../handlers/discovery/faults.js';
import { planPools, type MakeHandler } from '../handlers/discovery/handler.registry.js';
import { ListenerExplorer } from '../handlers/discovery/listener.explorer.js';
import { ProcessorExplorer, type FoundProcessor } from '../handlers/discovery/processor.explorer.js';
import { planSchedules } from '../handlers/discovery/schedule-plan.js';
import type { QueueEngine } from '../contract/engine.js';
import { Log, logWith } from '../contract/log.js';
import type { ProcessOrder } from '../contract/process-verbs.js';
import { CLEANUP_MS, within } from '../contract/retry.js';
import {
  BootstrapError,
  MissingRootError,
  NestConflictError,
  NotRunningError,
  type NestCopy,
} from '../errors.js';
import { messageOf } from '../errors/thrown.js';
import { QueueEvents } from '../events/queue-events.js';
import { HandlerMaker } from '../handlers/handler-maker.js';
import { scopedHandler } from '../handlers/scoped.js';
import { wrappedHandler } from '../handlers/wrapped.js';
import { QueueInspector } from '../inspect/queue-inspector.js';
import { planListeners } from '../handlers/listeners/listener-plan.js';
import { Listeners } from '../handlers/listeners/listeners.js';
import { collectFaults } from '../options/check.js';
import {
  resolveModuleOptions,
  type QueueModuleOptions,
  type ResolvedModuleOptions,
  type ResolvedQueueOptions,
} from '../options/module-options.js';
import type { EnhancerKind } from '../options/worker-options.js';
import { QueueProducer } from '../producer/queue-producer.js';
import { DispatcherRegistry } from './dispatcher.registry.js';
import { LimitsDeclarer } from './limits-declarer.js';
import { InMemoryQueues, logAddresses, logLinks, redisText } from './notices.js';
import { Observers } from './observers.js';
import {
  QueueRegistry,
  configKeys,
  configsInUse,
  connectionsInUse,
  type Substitute,
} from './queue.registry.js';
import { QueueRuntime, type WorkerServices } from './queue.runtime.js';
import { wiredProviders } from './wiring.js';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

logWith(Logger);

/**
 * The part of Nest that discovery needs. Nest's own `DiscoveryModule` is not imported: if the application uses another copy of
 * `@nestjs/core`, its error would only say that `ModulesContainer` is not available.
 */
const discoveryProviders: Provider[] = [
  MetadataScanner,
  {
    provide: DiscoveryService,
    inject: [{ token: ModulesContainer, optional: true }],
    useFactory: (modules: ModulesContainer | undefined) => {
      if (modules === undefined) throw new NestConflictError(callersCopy(new Error().stack), ownCopy());
      return new DiscoveryService(modules);
    },
  },
];

/** The copy that this library imports. */
function ownCopy(): NestCopy {
  const path = dirname(createRequire(__filename).resolve('@nestjs/core/package.json'));
  return { version: versionAt(path), path };
}

/** The copy that the application uses. Its providers cannot be injected here, but its injector is in the stack. */
function callersCopy(stack = ''): NestCopy | undefined {
  const frame = /^ +at (?:.*? \()?(.*[\\/]@nestjs[\\/]core)[\\/]/m.exec(stack);
  if (frame === null) return undefined;
  const path = frame[1]!.startsWith('file:') ? fileURLToPath(frame[1]!) : frame[1]!;
  return { version: versionAt(path), path };
}

function versionAt(path: string): string {
  try {
    return (JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as { version: string }).version;
  } catch {
    return 'unknown';
  }
}

/** The options of `forRoot` after checking. If there are faults, the values must not be used. */
interface Settings {
  readonly value: ResolvedModuleOptions;
  readonly faults: readonly string[];
}
const CHECKED_SETTINGS = 'godwit:checked-settings';

/** The parts that users inject. Each exists once; `forRoot` decides which modules can inject them. */
export class QueueCore {
  constructor(
    readonly runtime: QueueRuntime,
    readonly producer: QueueProducer,
    readonly events: QueueEvents,
    readonly inspector: QueueInspector,
  ) {}
}

/**
 * Provides everything that exists once in an application, and has the only lifecycle hooks. The module is global, so its hooks
 * run first at startup and last at shutdown.
 */
@Global()
@Module({
  providers: [
    ...discoveryProviders,
    {
      provide: CHECKED_SETTINGS,
      inject: [
        DiscoveryService,
        { token: ROOT_OPTIONS, optional: true },
        { token: SUBSTITUTE, optional: true },
      ],
      useFactory: checkSettings,
    },
    { provide: SETTINGS, inject: [CHECKED_SETTINGS], useFactory: (settings: Settings) => settings.value },
    {
      provide: QueueRegistry,
      inject: [SETTINGS, { token: ROOT_OPTIONS, optional: true }, { token: SUBSTITUTE, optional: true }],
      useFactory: (settings: ResolvedModuleOptions, root: unknown, substitute?: Substitute) =>
        new QueueRegistry(settings, root !== undefined, substitute),
    },
    ...wiredProviders,
    {
      provide: QueueRuntime,
      inject: [QUEUE_ENGINE, WORKER_SERVICES, SETTINGS, QueueRegistry, DiscoveryService],
      useFactory: (
        engine: QueueEngine,
        hire: (obey: (order: ProcessOrder) => void) => WorkerServices,
        settings: ResolvedModuleOptions,
        registry: QueueRegistry,
        discovery: DiscoveryService,
      ) =>
        new QueueRuntime(
          engine,
          hire,
          settings,
          () => registry.names(),
          (queue) => registry.open(queue),
          () => redisText(connectionsInUse(discovery, registry)),
        ),
    },
    {
      provide: QueueCore,
      inject: [QueueRuntime, QueueProducer, QueueEvents, QueueInspector],
      useFactory: (...parts: ConstructorParameters<typeof QueueCore>) => new QueueCore(...parts),
    },
    ProcessorExplorer,
    ListenerExplorer,
  ],
  exports: [
    QueueCore,
    QueueRegistry,
    DispatcherRegistry,
    QUEUE_ENGINE,
    QUEUE_HANDLES,
    SETTINGS,
    Listeners,
    Observers,
  ],
})
export class QueueCoreModule
  implements
    OnModuleInit,
    OnApplicationBootstrap,
    OnModuleDestroy,
    BeforeApplicationShutdown,
    OnApplicationShutdown
{
  private readonly logger = new Log('QueueModule');
  /** Processors that have been found so far. */
  private readonly exploredProcessors = new Set<unknown>();
  /** Classes of listeners that have been found so far. */
  private readonly exploredListeners = new Set<string>();
  private readonly inMemory: InMemoryQueues;
  /** Lets jobs and then listeners finish, before anything they use is destroyed. */
  private readonly drain = new Drain(async () => {
    await this.core.runtime.shutDown();
    await this.listeners.finish(this.core.runtime.stopsBy);
  });
  private shutdown?: Promise<void>;
  private stopLogging = () => {};
  private detachTelemetry: (() => void) | undefined;

  constructor(
    @Inject(CHECKED_SETTINGS) private readonly settings: Settings,
    @Inject(QUEUE_ENGINE) private readonly engine: QueueEngine,
    private readonly registry: QueueRegistry,
    private readonly dispatchers: DispatcherRegistry,
    private readonly limits: LimitsDeclarer,
    private readonly core: QueueCore,
    private readonly observers: Observers,
    private readonly explorer: ProcessorExplorer,
    private readonly listenerExplorer: ListenerExplorer,
    private readonly listeners: Listeners,
    private readonly discovery: DiscoveryService,
    // Missing if the application uses another copy of Nest, which `discoveryProviders` reports.
    @Optional() private readonly modules: ModulesContainer,
    @Optional() private readonly application: ExternalContextCreator,
    @Optional() private readonly lazyLoader?: LazyModuleLoader,
    @Optional() @Inject(SUBSTITUTE) private readonly substitute?: Substitute,
  ) {
    this.inMemory = new InMemoryQueues(registry, () => configsInUse(discovery, registry));
  }

  /**
   * Checks everything, then connects. Both happen before the application's own hooks run, so those may add jobs.
   */
  async onModuleInit(): Promise<void> {
    await this.checkAndPrepare();
    this.followLazyModules();
    this.stopLogging = logLinks(this.engine, this.logger);
    if (!this.substitute && this.settings.value.log.start)
      logAddresses(connectionsInUse(this.discovery, this.registry), this.logger);
    for (const notice of this.inMemory.notices()) this.logger.warn(notice);
    this.attachTelemetry();
    await unlessClosed(this.core.runtime.open());
    if (!this.substitute) await this.limits.writeMissing(this.queuesWithoutWorkers());
  }

  private queuesWithoutWorkers(): ResolvedQueueOptions[] {
    const { role } = this.settings.value;
    const plans = role === 'producer' ? [] : (this.core.runtime.prepared?.plans ?? []);
    const worked = new Set(plans.flatMap(({ queues }) => queues.map(({ queue }) => queue)));
    const others = this.registry.names().filter((name) => this.registry.has(name) && !worked.has(name));
    return others.map((name) => this.registry.optionsOf(name));
  }

  private attachTelemetry(): void {
    const { inspector, runtime } = this.core;
    const source = { queues: () => inspector.queues(), load: () => runtime.load };
    this.detachTelemetry = this.settings.value.telemetry?.attach(source);
  }

  /** Runs when every provider is initialised. Listeners start before the workers, so they get the events of the first job. */
  async onApplicationBootstrap(): Promise<void> {
    await this.listeners.start();
    await unlessClosed(this.core.runtime.boot());
  }

  /** Usually the hooks of the processors have already started the drain. Without processors it starts here. */
  async onModuleDestroy(): Promise<void> {
    await this.drain.start();
  }

  /** Runs after the drain, so that its events are delivered, and before the HTTP server waits for open event streams. */
  async beforeApplicationShutdown(): Promise<void> {
    this.dispatchers.close();
    try {
      await this.core.events.close();
    } catch (error) {
      this.logger.error(`closing the event streams: ${messageOf(error)}`);
    }
  }

  /** Runs last, because requests that are served until then may still add jobs. Nest calls it for each `close()`. */
  onApplicationShutdown(): Promise<void> {
    return (this.shutdown ??= this.finish());
  }

  private async finish(): Promise<void> {
    await this.logLostJobs();
    this.detachTelemetry?.();
    const leftMs = this.core.runtime.stopsBy - performance.now();
    await within(Math.max(CLEANUP_MS, leftMs), this.observers.finish());
    // Before the connection closes, or a write of limits that waits for Redis would be logged as failed.
    this.limits.stop();
    await this.core.runtime.close();
    this.observers.close();
    this.stopLogging();
    this.drain.end();
  }

  /** Nest calls no hooks in modules that are loaded lazily, so this looks for their processors after each load. */
  private followLazyModules(): void {
    const { lazyLoader } = this;
    if (!lazyLoader) return;
    const load = lazyLoader.load.bind(lazyLoader);
    lazyLoader.load = async (...args) => {
      const known = this.registry.faults.length;
      const loaded = await load(...args);
      await this.startLazyProcessors(this.registry.faults.slice(known));
      return loaded;
    };
  }

  /** @throws {BootstrapError} if a processor or the options of a queue conflict with the existing ones. */
  private async startLazyProcessors(conflicts: readonly string[]): Promise<void> {
    for (const { className } of this.listenerExplorer
      .explore()
      .listeners.filter((one) => !this.exploredListeners.has(one.className))) {
      this.exploredListeners.add(className);
      this.logger.warn(warnings.lazyListeners(className));
    }
    const found = this.explorer.explore();
    const added = found.processors.filter(({ wrapper }) => !this.exploredProcessors.has(wrapper));
    if (added.length === 0 && conflicts.length > 0) throw new BootstrapError(conflicts);
    if (added.length === 0) return;
    const { plans, schedules, faults: misfits } = await this.planWork(found.processors);
    const all = [...this.registry.faults, ...found.faults, ...misfits];
    if (all.length > 0) throw new BootstrapError(all);
    for (const { wrapper } of added) this.exploredProcessors.add(wrapper);
    const { prepared } = this.core.runtime;
    const running = new Set(prepared?.plans.flatMap(({ queues }) => queues.map(({ queue }) => queue)));
    const late = schedules.filter(({ queue }) => running.has(queue)).flatMap((one) => one.schedules);
    for (const { className } of added) {
      if (late.some(({ label }) => label.includes(` of ${className}.`)))
        this.logger.warn(warnings.lazySchedules(className));
    }
    drainBeforeDestroy(added, this.drain, this.logger);
    await this.core.runtime.extend(plans, schedules);
  }

  /** Pools and schedules of these processors, and their mistakes. */
  private async planWork(processors: readonly FoundProcessor[]) {
    const maker = this.handlerMaker();
    const makeHandler: MakeHandler = (processor, method, label, gatherer) => {
      const target = { ...processor, method, label, moduleKey: processor.wrapper.host?.token ?? '' };
      // Guards and interceptors run for each job before it joins its batch, and see its own outcome.
      const joins = gatherer && { [method]: { value: gatherer.put } };
      const instance = joins ? Object.create(processor.instance, joins) : processor.instance;
      const handler = processor.isScoped ? scopedHandler(maker, target) : maker.make({ ...target, instance });
      return wrappedHandler(this.settings.value.wrap, handler);
    };
    const pools = await planPools(processors, this.registry.names(), makeHandler, this.optionsOf);
    const schedules = await planSchedules(processors, this.registry.names(), this.optionsOf);
    return {
      plans: pools.plans,
      schedules: schedules.queues,
      faults: [...pools.faults, ...maker.faults, ...schedules.faults],
    };
  }

  private readonly optionsOf = (queue: string) =>
    this.registry.has(queue) ? this.registry.optionsOf(queue) : undefined;

  private async checkAndPrepare(): Promise<void> {
    this.registry.seal();
    const found = this.explorer.explore();
    for (const { wrapper } of found.processors) this.exploredProcessors.add(wrapper);
    const { plans, schedules, faults: misfits } = await this.planWork(found.processors);
    const heard = this.listenerExplorer.explore();
    for (const { className } of heard.listeners) this.exploredListeners.add(className);
    const listeners = planListeners(heard.listeners, this.registry.names(), (queue) => {
      const options = this.optionsOf(queue);
      return options && options.events.max > 0;
    });
    const all = [
      ...this.settings.faults,
      ...this.rootFaults(),
      ...this.registry.faults,
      ...this.dispatchers.faults,
      ...this.inMemory.faults(this.settings.value, this.dispatchers.names, process.env.NODE_ENV),
      ...found.faults,
      ...misfits,
      ...heard.faults,
      ...listeners.faults,
    ];
    if (all.length > 0) {
      // The engine has the default in place of each invalid option: an add would reach another Redis than the one that was meant.
      await this.core.runtime.close();
      throw new BootstrapError(all);
    }
    for (const warning of [...found.warnings, ...heard.warnings]) this.logger.warn(warning);
    this.listeners.prepare(listeners.plans);
    drainBeforeDestroy([...found.processors, ...heard.providers], this.drain, this.logger);
    this.core.runtime.prepare(plans, schedules);
  }

  /** Never rejects. */
  private async logLostJobs(): Promise<void> {
    try {
      const lost = await this.inMemory.lossNotice(this.engine);
      if (lost !== null) this.logger.warn(lost);
    } catch (error) {
      this.logger.error(`counting the jobs that are lost: ${messageOf(error)}`);
    }
  }

  /** If the options are invalid (which has been reported), no global enhancers apply. */
  private handlerMaker(): HandlerMaker {
    const kinds = this.settings.faults.length > 0 ? [] : this.settings.value.globalEnhancers;
    const { config, faults: scoped } = globalEnhancers(this.application, kinds);
    const maker = new HandlerMaker(this.modules, config);
    maker.faults.push(...scoped);
    return maker;
  }

  private rootFaults(): string[] {
    const tokens = this.discovery.getProviders().map(({ token }) => token);
    return [undefined, ...configKeys(this.discovery)].flatMap((key) => {
      const root = key === undefined ? ROOT_OPTIONS : namedRootToken(key);
      const times = tokens.filter((token) => token === root).length;
      return times > 1 ? [faults.rootTwice(times, key)] : [];
    });
  }
}

function checkSettings(
  discovery: DiscoveryService,
  given: QueueModuleOptions | undefined,
  substitute?: Substitute,
): Settings {
  const options = substitute ? substitute.options(given) : given;
  if (options === undefined && configKeys(discovery).length === 0) throw new MissingRootError();
  return collectFaults((report) => resolveModuleOptions(options, report));
}

/** The global enhancers of the application that apply to jobs. */
function globalEnhancers(
  application: ExternalContextCreator,
  kinds: readonly EnhancerKind[],
): { readonly config: ApplicationConfig; readonly faults: readonly string[] } {
  const { applicationConfig: given } = (application as unknown as WithContainer).container;
  const config = new ApplicationConfig();
  const scoped = {
    guards: given.getGlobalRequestGuards(),
    interceptors: given.getGlobalRequestInterceptors(),
    pipes: given.getGlobalRequestPipes(),
    filters: given.getGlobalRequestFilters(),
  };
  if (kinds.includes('guards')) config.useGlobalGuards(...given.getGlobalGuards());
  if (kinds.includes('interceptors')) config.useGlobalInterceptors(...given.getGlobalInterceptors());
  if (kinds.includes('pipes')) config.useGlobalPipes(...given.getGlobalPipes());
  if (kinds.includes('filters')) config.useGlobalFilters(...given.getGlobalFilters());
  const faults = kinds.flatMap((kind) =>
    scoped[kind].map(
      ({ metatype }) =>
        `forRoot().enhancers.global includes ${metatype?.name}, which is request-scoped; ` +
        `make it a singleton, put it on the processors instead, or leave '${kind}' out`,
    ),
  );
  return { config, faults };
}

/** Nest has no injection token for the configuration of an application, only this internal property. */
interface WithContainer {
  readonly container: { readonly applicationConfig: ApplicationConfig };
}

/** An application may be closed before its start is over, as in a rolling deploy. Then the start ends without an error. */
async function unlessClosed(starting: Promise<void>): Promise<void> {
  try {
    await starting;
  } catch (error) {
    if (!(error instanceof NotRunningError)) throw error;
  }
}
