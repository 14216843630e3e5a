import type { Provider } from '@nestjs/common';
import { QUEUE_ENGINE, QUEUE_HANDLES, SETTINGS, WORKFORCE } from './decorators/metadata.js';
import type { PoolPlan } from './discovery/handler.registry.js';
import type { QueueEngine } from './engine/engine.js';
import { RedisEngine } from './engine/redis-engine.js';
import { QueueEvents } from './events/queue-events.js';
import { JobWaiter } from './events/wait-for-job.js';
import { Recoverer } from './maintenance/recoverer.js';
import type { ResolvedModuleOptions } from './options/module-options.js';
import { QueueProducer } from './producer/queue-producer.js';
import { Queue } from './producer/queue.js';
import { QueueRegistry } from './queue.registry.js';
import type { Workforce } from './queue.runtime.js';
import { Doorbell, MAX_BLOCK_MS } from './worker/doorbell.js';
import { LeaseKeeper } from './worker/lease-keeper.js';
import { Slots } from './worker/slots.js';
import { StrictTurns, WeightedTurns } from './worker/turns.js';
import { WorkerPool } from './worker/worker-pool.js';

/*
 * The one place where the rooms are put together: what is made of which class, from what. Nothing here connects: the
 * engine does so when it is opened or first used.
 */

/** A call that is not answered in this time is taken for a silent socket, whose connection is made anew. */
const CALL_MS = 2000;

type HandleOf = (queue: string) => Queue;

function createEngine(settings: ResolvedModuleOptions, registry: QueueRegistry): QueueEngine {
  const { connection, prefix, leaseMs } = settings;
  const limitsOf = (queue: string) => {
    const { events, dead } = registry.optionsOf(queue);
    return { maxEvents: events.max, deadMax: dead.max, deadAgeMs: dead.ageMs };
  };
  const replicasAsked = () => {
    const queues = registry.names().filter((name) => registry.has(name));
    return Math.max(0, ...queues.map((name) => registry.optionsOf(name).durability?.replicas ?? 0));
  };
  return new RedisEngine({ connection, prefix, leaseMs, callMs: CALL_MS, limitsOf, replicasAsked });
}

function createEvents(engine: QueueEngine, registry: QueueRegistry): QueueEvents {
  const check = (queue: string) => void registry.optionsOf(queue);
  return new QueueEvents(engine, () => registry.names(), check);
}

function createHandles(
  engine: QueueEngine,
  registry: QueueRegistry,
  settings: ResolvedModuleOptions,
  events: QueueEvents,
): HandleOf {
  const handles = new Map<string, Queue>();
  const waiter = new JobWaiter(engine.admin, events);
  return (name) => {
    let handle = handles.get(name);
    if (handle === undefined) {
      handle = new Queue(engine, registry.optionsOf(name), settings, (queue, id) =>
        waiter.prepare(queue, id),
      );
      handles.set(name, handle);
    }
    return handle;
  };
}

/** What all pools of one start share: the bell, the leases and the look after other workers. */
function hire(engine: QueueEngine, registry: QueueRegistry, settings: ResolvedModuleOptions): Workforce {
  const { leaseMs, maxStalls, maxBlockMs } = settings;
  // An idle worker learns of the leases of others when it asks, so it asks at least once in a lease.
  const doorbell = new Doorbell(engine, Math.min(MAX_BLOCK_MS, leaseMs));
  const leases = new LeaseKeeper(engine, leaseMs, maxBlockMs);
  const recoverer = new Recoverer(engine, { leaseMs, maxStalls });
  return {
    createPools: ({ order, concurrency, queues }: PoolPlan) => {
      const slots = new Slots(concurrency, order === 'strict' ? new StrictTurns() : new WeightedTurns());
      return queues.map(
        ({ queue, weight, find }) =>
          new WorkerPool({
            engine,
            queue: registry.optionsOf(queue),
            slots,
            weight,
            find,
            leaseMs,
            doorbell,
            leases,
            watchLeases: (name, worker, leaseInMs) => recoverer.watch(name, worker, leaseInMs),
          }),
      );
    },
    stop: async () => {
      recoverer.stop();
      await Promise.all([doorbell.stop(), leases.stop()]);
    },
  };
}

export const wiredProviders: Provider[] = [
  { provide: QUEUE_ENGINE, inject: [SETTINGS, QueueRegistry], useFactory: createEngine },
  { provide: QueueEvents, inject: [QUEUE_ENGINE, QueueRegistry], useFactory: createEvents },
  {
    provide: QUEUE_HANDLES,
    inject: [QUEUE_ENGINE, QueueRegistry, SETTINGS, QueueEvents],
    useFactory: createHandles,
  },
  {
    provide: QueueProducer,
    inject: [QUEUE_HANDLES],
    useFactory: (handleOf: HandleOf) => new QueueProducer(handleOf),
  },
  {
    provide: WORKFORCE,
    inject: [QUEUE_ENGINE, QueueRegistry, SETTINGS],
    useFactory:
      (...parts: Parameters<typeof hire>) =>
      () =>
        hire(...parts),
  },
];
