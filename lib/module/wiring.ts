import type { Provider } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import {
  QUEUE_ENGINE,
  QUEUE_HANDLES,
  SETTINGS,
  SUBSTITUTE,
  WORKER_SERVICES,
} from '../decorators/metadata.js';
import type { PoolPlan } from '../handlers/discovery/handler.registry.js';
import type { LeaseTimes, QueueEngine } from '../contract/engine.js';
import type { ProcessOrder } from '../contract/process-verbs.js';
import { CALL_MS } from '../contract/retry.js';
import { RoutedEngine } from '../engine/routed-engine.js';
import { Routes } from '../engine/routes.js';
import { QueueEvents } from '../events/queue-events.js';
import { Listeners } from '../handlers/listeners/listeners.js';
import { JobWaiter } from '../events/job-wait.js';
import { Janitor } from '../worker/janitor.js';
import { QueueInspector } from '../inspect/queue-inspector.js';
import { generateId } from '../job/job-id.js';
import { Declarer } from '../schedule/declarer.js';
import { Recoverer } from '../worker/recoverer.js';
import { Scheduler } from '../schedule/schedule-timer.js';
import { MemoryEngine } from '../memory/memory-engine.js';
import { isMemory } from '../options/connection.js';
import type { ResolvedModuleOptions } from '../options/module-options.js';
import type { Queue } from '../producer/queue.js';
import { QueueProducer } from '../producer/queue-producer.js';
import { createQueue } from '../producer/traced-queue.js';
import { DispatcherRegistry } from './dispatcher.registry.js';
import { Observers } from './observers.js';
import { LimitsDeclarer } from './limits-declarer.js';
import { QueueRegistry, configKeys, configsInUse, type Substitute } from './queue.registry.js';
import type { WorkerServices } from './queue.runtime.js';
import { Doorbell } from '../worker/doorbell.js';
import type { JobListeners } from '../worker/job-listeners.js';
import { LeaseKeeper } from '../worker/lease-keeper.js';
import { Registrar } from '../worker/registrar.js';
import { Slots, StrictTurns, WeightedTurns } from '../worker/slots.js';
import { WorkerPool } from '../worker/worker-pool.js';

/*
 * The only place that creates engines, pools and their services, and connects them with each other. Nothing here opens a connection: the
 * engine does so when it is opened or first used.
 */

type HandleOf = (queue: string) => Queue;

/**
 * Creates the engine. With several configurations, creates one for each that is in use. If all of them are in memory, neither the
 * Redis engine nor ioredis is loaded.
 */
async function createEngine(
  settings: ResolvedModuleOptions,
  registry: QueueRegistry,
  discovery: DiscoveryService,
  substitute?: Substitute,
): Promise<QueueEngine> {
  if (substitute) return substitute.createEngine((queue) => registry.limitsOf(queue));
  const isAlone = configKeys(discovery).length === 0;
  if (isAlone && isMemory(settings.connection)) return memoryEngine(registry);
  const { RedisEngine } = await import('../engine/redis-engine.js');
  const make = (key: string) => {
    const own = key === '' ? settings : registry.settingsOf(key);
    const { connection, prefix } = own;
    if (isMemory(connection)) return memoryEngine(registry);
    const queues = () => registry.queuesOf(key);
    const replicasAsked = () =>
      Math.max(0, ...queues().map((name) => registry.optionsOf(name).durability?.replicas ?? 0));
    const limitsOf = (queue: string) => registry.limitsOf(queue);
    const { telemetry } = settings;
    const internal = telemetry && { internal: <T>(work: () => T) => telemetry.internal(work) };
    const ofEngine = { connection, prefix, callMs: CALL_MS, limitsOf, replicasAsked, queues, ...internal };
    return new RedisEngine(ofEngine);
  };
  if (isAlone) return make('');
  const keys = () => configsInUse(discovery, registry);
  return new RoutedEngine(new Routes(keys, (queue) => registry.configOf(queue), make));
}

/** Each engine has its own memory. */
function memoryEngine(registry: QueueRegistry): QueueEngine {
  return new MemoryEngine({ limitsOf: (queue) => registry.limitsOf(queue) });
}

function createEvents(engine: QueueEngine, registry: QueueRegistry): QueueEvents {
  const check = (queue: string) => void registry.optionsOf(queue);
  const sourceOf = (queue: string) => (engine instanceof RoutedEngine ? engine.routes.of(queue) : engine);
  return new QueueEvents(sourceOf, () => registry.names(), check);
}

function createHandles(
  engine: QueueEngine,
  registry: QueueRegistry,
  settings: ResolvedModuleOptions,
  events: QueueEvents,
  substitute?: Substitute,
): HandleOf {
  const handles = new Map<string, Queue>();
  const waiter = new JobWaiter(engine.admin, events);
  return (name) => {
    let handle = handles.get(name);
    if (handle === undefined) {
      handle = createQueue(
        settings.telemetry,
        engine,
        registry.optionsOf(name),
        settings,
        (queue, id) => substitute?.waitFor(queue, id) ?? waiter.prepare(queue, id),
      );
      handles.set(name, handle);
    }
    return handle;
  };
}

function createRecoverer(
  engine: QueueEngine,
  registry: QueueRegistry,
  listenersOf: ReadonlyMap<string, JobListeners>,
  observers: Observers,
): Recoverer {
  return new Recoverer(
    engine,
    (queue) => registry.optionsOf(queue).lease,
    (worker) => engine.processes.ofWorker(worker),
    (queue, ids, dead) => {
      observers.stalled(queue, ids.length, dead.length);
      const { attempts } = registry.optionsOf(queue).policy;
      listenersOf.get(queue)?.recovered(ids, dead, attempts, (id) => engine.admin.get(queue, id));
    },
  );
}

function createLeases(
  engine: QueueEngine,
  registry: QueueRegistry,
  own: LeaseTimes,
  limits: LimitsDeclarer,
): LeaseKeeper {
  const queues = () =>
    registry
      .names()
      .filter((queue) => registry.has(queue))
      .map((queue) => registry.optionsOf(queue));
  const shortestMs = Math.min(own.leaseMs, ...queues().map(({ lease }) => lease.leaseMs));
  const leases = new LeaseKeeper(engine, own, shortestMs / 4);
  // Lost schedules are noticed by their declarer, when it renews the declaration.
  leases.onDataLost = (queue) =>
    limits.writeMissing(queues().filter(({ name }) => queue === undefined || name === queue));
  return leases;
}

/** Creates what all pools of one start share: doorbell, leases, recovery of other workers, schedules, upkeep. */
function createWorkerServices(
  engine: QueueEngine,
  registry: QueueRegistry,
  settings: ResolvedModuleOptions,
  dispatchers: DispatcherRegistry,
  observers: Observers,
  limits: LimitsDeclarer,
  obey: (order: ProcessOrder) => void,
): WorkerServices {
  const { lease, owner, role } = settings;
  const doorbell = new Doorbell(engine);
  const leases = createLeases(engine, registry, lease, limits);
  const listenersOf = new Map<string, JobListeners>();
  const recoverer = createRecoverer(engine, registry, listenersOf, observers);
  const registrar = new Registrar(engine, leases, role, lease.leaseMs, obey);
  leases.onOrders = (orders) => registrar.obey(orders);
  const scheduler = new Scheduler(engine);
  const declarer = new Declarer(engine, { owner, leaseMs: lease.leaseMs, process: generateId(engine.now()) });
  dispatchers.start();
  const janitor = new Janitor(engine, () => registry.names(), settings.upkeepMs);
  return {
    hasMore: dispatchers.names.length > 0,
    declare: async (schedules) => {
      const own = schedules.map(({ queue }) => registry.optionsOf(queue));
      await Promise.all([declarer.start(schedules), limits.start(own)]);
    },
    withdraw: () => declarer.stop(),
    createPools: ({ order, concurrency, queues }: PoolPlan) => {
      janitor.start();
      const slots = new Slots(concurrency, order === 'strict' ? new StrictTurns() : new WeightedTurns());
      const pools = queues.map(({ queue, weight, find, names, perTurn, listeners }) => {
        listenersOf.set(queue, listeners);
        // Only answers tell an idle worker about the leases of others, so it asks at least once per lease.
        doorbell.lookWithin(registry.optionsOf(queue).lease.leaseMs);
        scheduler.add(queue);
        return new WorkerPool({
          engine,
          queue: registry.optionsOf(queue),
          slots,
          weight,
          find,
          names,
          perTurn,
          listeners,
          observe: observers.ended,
          telemetry: settings.telemetry,
          doorbell,
          leases,
          heard: (name, worker, { leaseInMs, scheduleInMs }) => {
            recoverer.watch(name, worker, leaseInMs);
            scheduler.hear(name, scheduleInMs);
          },
        });
      });
      for (const pool of pools) registrar.add(pool);
      return pools;
    },
    removePool: (queue) => {
      for (const its of [registrar, scheduler, recoverer]) its.remove(queue);
      listenersOf.delete(queue);
      return declarer.remove(queue);
    },
    report: (state) => registrar.say(state),
    stop: async () => {
      for (const its of [recoverer, scheduler, registrar]) its.stop();
      const left = Promise.all([doorbell.stop(), leases.stop()]).then(() => registrar.leave());
      await Promise.all([left, observers.finish(), janitor.stop(), dispatchers.stop()]);
    },
  };
}

type ServiceParts = Parameters<typeof createWorkerServices> extends [...infer Parts, unknown] ? Parts : never;

const substitute = { token: SUBSTITUTE, optional: true };

export const wiredProviders: Provider[] = [
  {
    provide: QUEUE_ENGINE,
    inject: [SETTINGS, QueueRegistry, DiscoveryService, substitute],
    useFactory: createEngine,
  },
  {
    provide: DispatcherRegistry,
    inject: [QUEUE_ENGINE, SETTINGS],
    useFactory: (engine: QueueEngine, { prefix }: ResolvedModuleOptions) =>
      new DispatcherRegistry(engine, prefix),
  },
  {
    provide: Observers,
    inject: [QUEUE_ENGINE, SETTINGS],
    useFactory: (engine: QueueEngine, settings: ResolvedModuleOptions) => new Observers(engine, settings),
  },
  {
    provide: LimitsDeclarer,
    inject: [QUEUE_ENGINE],
    useFactory: (engine: QueueEngine) => new LimitsDeclarer(engine),
  },
  { provide: QueueEvents, inject: [QUEUE_ENGINE, QueueRegistry], useFactory: createEvents },
  { provide: Listeners, inject: [QueueEvents], useFactory: (events: QueueEvents) => new Listeners(events) },
  {
    provide: QUEUE_HANDLES,
    inject: [QUEUE_ENGINE, QueueRegistry, SETTINGS, QueueEvents, substitute],
    useFactory: createHandles,
  },
  {
    provide: QueueProducer,
    inject: [QUEUE_HANDLES, QueueRegistry],
    useFactory: (handleOf: HandleOf, registry: QueueRegistry) =>
      new QueueProducer(handleOf, (name) => void registry.open(name)),
  },
  {
    provide: QueueInspector,
    inject: [QUEUE_ENGINE, QueueRegistry],
    useFactory: (engine: QueueEngine, registry: QueueRegistry) =>
      new QueueInspector(engine, () => registry.names()),
  },
  {
    provide: WORKER_SERVICES,
    inject: [QUEUE_ENGINE, QueueRegistry, SETTINGS, DispatcherRegistry, Observers, LimitsDeclarer],
    useFactory:
      (...parts: ServiceParts) =>
      (obey: (order: ProcessOrder) => void) =>
        createWorkerServices(...parts, obey),
  },
];
