import type {
  Heartbeat,
  HeartbeatPlan,
  LinkEvent,
  QueueEngine,
  QueueEventBatch,
  QueueLook,
  ServerWarning,
} from '../contract/engine.js';
import type { BulkActVerbs } from '../contract/bulk-act-verbs.js';
import { compareActionIds, type ActionVerbs } from '../contract/actions.js';
import type { AdminVerbs } from '../contract/admin-verbs.js';
import type { DeclarationVerbs } from '../contract/declaration-verbs.js';
import type { LimitVerbs } from '../contract/limit-verbs.js';
import { notReplaced, type ProcessVerbs } from '../contract/process-verbs.js';
import { RoutedBells } from './wake/routed-bells.js';
import type { Routes } from './routes.js';
import type { ScheduleVerbs } from '../contract/schedule-verbs.js';
import type { TaskVerbs } from '../contract/task-verbs.js';
import type { UpkeepVerbs } from '../contract/upkeep-verbs.js';

/** The verbs whose first argument is the queue. */
const BY_QUEUE = [
  'checkQueue',
  'enqueue',
  'exchange',
  'beat',
  'overdue',
  'recover',
  'adopt',
  'release',
  'promote',
  'note',
  'ring',
  'lastEvent',
] as const satisfies readonly (keyof QueueEngine)[];

/** Passes each of these verbs to the engine of the queue. */
const QueueForwarder = class {
  constructor(readonly routes: Routes) {}
} as unknown as new (
  routes: Routes,
) => Pick<QueueEngine, (typeof BY_QUEUE)[number]> & { readonly routes: Routes };

for (const verb of BY_QUEUE) {
  Object.defineProperty(QueueForwarder.prototype, verb, {
    value(this: { routes: Routes }, queue: string, ...args: unknown[]): unknown {
      const engine = this.routes.of(queue) as unknown as Record<string, (...given: unknown[]) => unknown>;
      return engine[verb]!(queue, ...args);
    },
  });
}

/**
 * Several engines as one, for an application whose queues are in several stores. A call about one queue goes to its engine. A
 * call about several queues goes to each of their engines.
 */
export class RoutedEngine extends QueueForwarder implements QueueEngine {
  readonly admin: AdminVerbs;
  readonly declarations: DeclarationVerbs;
  readonly schedules: ScheduleVerbs;
  readonly upkeep: UpkeepVerbs;
  readonly processes: ProcessVerbs;
  readonly limits: LimitVerbs;
  readonly actions: ActionVerbs;
  readonly bulkActs: BulkActVerbs;
  private readonly bells: RoutedBells;

  constructor(routes: Routes) {
    super(routes);
    const of = (queue: string) => routes.of(queue);
    this.admin = byQueue((queue) => of(queue).admin);
    this.declarations = byQueue((queue) => of(queue).declarations);
    this.schedules = byQueue((queue) => of(queue).schedules, {
      scheduled: (queues) => routes.concat(queues, (engine, some) => engine.schedules.scheduled(some)),
    });
    this.upkeep = byQueue((queue) => of(queue).upkeep, {
      // Two processes may each get a part of the claim. Then both trim all queues, which is harmless.
      claimUpkeep: async (queues, forMs) =>
        (
          await routes.concat(queues, async (engine, some) => [await engine.upkeep.claimUpkeep(some, forMs)])
        ).includes(true),
      overgrown: (queues) => routes.concat(queues, (engine, some) => engine.upkeep.overgrown(some)),
    });
    this.limits = byQueue((queue) => of(queue).limits);
    this.processes = processesOf(routes);
    this.actions = actionsOf(routes);
    this.bulkActs = bulkActsOf(routes);
    this.bells = new RoutedBells(routes);
  }

  /** The verbs for queues of other programs use the store of `forRoot` without a key, or the only store. */
  get tasks(): TaskVerbs {
    return this.routes.first().tasks;
  }

  async open(): Promise<boolean> {
    const there = await this.routes.each((engine) => engine.open());
    return there.every(Boolean);
  }

  async close(): Promise<void> {
    await this.routes.each((engine) => engine.close());
  }

  onLink(listener: (event: LinkEvent) => void): () => void {
    return this.routes.listen((engine, config) => engine.onLink((event) => listener({ ...event, config })));
  }

  onWarning(listener: (warning: ServerWarning) => void): () => void {
    return this.routes.listen((engine) => engine.onWarning(listener));
  }

  now(): number {
    return this.routes.first().now();
  }

  /** Opens a heartbeat for each store. Null if one of the stores has none. */
  openHeartbeat(plan: HeartbeatPlan): Heartbeat | null {
    let all: Heartbeat[] = [];
    const close = async () => void (await Promise.all(all.map((heartbeat) => heartbeat.close())));
    const onFailure = (error: Error) => {
      // From now on a timer renews all leases.
      void close();
      plan.onFailure(error);
    };
    const engines = this.routes.all();
    const ready = new Set<QueueEngine>();
    const opened = engines.map((engine) => {
      const onReady = () => {
        if (ready.add(engine).size === engines.length) plan.onReady();
      };
      return [engine, engine.openHeartbeat({ ...plan, onReady, onFailure })] as const;
    });
    const byEngine = new Map(opened);
    all = opened.map(([, heartbeat]) => heartbeat).filter((heartbeat) => heartbeat !== null);
    if (all.length < opened.length) {
      void close();
      return null;
    }
    const of = (queue: string) => byEngine.get(this.routes.of(queue))!;
    return {
      follow: (queue, worker, lease) => of(queue).follow(queue, worker, lease),
      holds: (queue, any) => of(queue).holds(queue, any),
      leave: (queue) => of(queue).leave(queue),
      show: (record) => all.forEach((heartbeat) => heartbeat.show(record)),
      close,
    };
  }

  awaitBell(queues: readonly string[], maxMs: number): Promise<string | null> {
    return this.bells.await(queues, maxMs);
  }

  interruptBell(): void {
    this.bells.interrupt();
  }

  /** If a store fails, its queues are reported as having work. Workers of other stores do not wait for it. */
  look(sleepers: readonly { queue: string; worker: string }[]): Promise<readonly QueueLook[]> {
    const workers = new Map(sleepers.map((sleeper) => [sleeper.queue, sleeper]));
    return this.routes.concat([...workers.keys()], (engine, queues) =>
      engine.look(queues.map((queue) => workers.get(queue)!)).catch(() =>
        queues.map((queue) => ({
          queue,
          work: true,
          dueInMs: null,
          leaseInMs: null,
          scheduleInMs: null,
        })),
      ),
    );
  }

  /** If several stores are read at once, the slowest decides. So event readers read one store each. */
  readEvents(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    return this.routes.concat([...after.keys()], (engine, queues) =>
      engine.readEvents(new Map(queues.map((queue) => [queue, after.get(queue)!])), blockMs),
    );
  }

  interruptEvents(): void {
    void this.routes.each(async (engine) => engine.interruptEvents());
  }

  async openEvents(): Promise<void> {
    await this.routes.each((engine) => engine.openEvents());
  }

  async closeEvents(): Promise<void> {
    await this.routes.each((engine) => engine.closeEvents());
  }
}

/** Verbs whose first argument is the queue. `others` has the verbs that take several queues. */
function byQueue<Verbs extends object>(of: (queue: string) => Verbs, others: Partial<Verbs> = {}): Verbs {
  return new Proxy(others as Verbs, {
    get: (target, verb) =>
      Reflect.get(target, verb) ??
      ((queue: string, ...args: unknown[]) => {
        const verbs = of(queue) as Record<PropertyKey, (...given: unknown[]) => unknown>;
        return verbs[verb]!(queue, ...args);
      }),
  });
}

/** A process writes its record to every store that it uses. */
function processesOf(routes: Routes): ProcessVerbs {
  return {
    get server() {
      return routes.first().processes.server;
    },
    register: async (record, leaseMs) => {
      const all = await routes.each((engine) => engine.processes.register(record, leaseMs));
      return {
        orders: all.flatMap(({ orders }) => orders),
        hasLostData: all.some(({ hasLostData }) => hasLostData),
      };
    },
    order: async (process, order) =>
      (await routes.each((engine) => engine.processes.order(process, order))).includes(true),
    unregister: async (process) => void (await routes.each((engine) => engine.processes.unregister(process))),
    list: async () => {
      const lists = await routes.each((engine) => engine.processes.list());
      const records = new Map(lists.flatMap((list) => list.records).map((record) => [record.id, record]));
      const silent = new Map(lists.flatMap((list) => list.silent).map((one) => [one.record.id, one]));
      for (const id of records.keys()) silent.delete(id);
      return {
        records: [...records.values()],
        silent: notReplaced([...silent.values()], [...records.values()]),
        unreadable: lists.flatMap((list) => list.unreadable),
      };
    },
    ofWorker: async (worker) => {
      const found = await routes.each((engine) => engine.processes.ofWorker(worker));
      return found.find((record) => record !== null) ?? null;
    },
    worksOn: async (queues) =>
      void (await routes.concat(queues, async (engine, some) => {
        await engine.processes.worksOn(some);
        return [];
      })),
    // One of them is enough: the processes of an application have the same connections.
    lead: (call) => routes.first().processes.lead(call),
    // If a name is not registered here, the queue of that name is in the store of `forRoot` without a key.
    queues: async () => {
      const lists = await routes.each(async (engine) => {
        const names = await engine.processes.queues();
        return names.filter((name) => routes.of(name) === engine);
      });
      return lists.flat();
    },
  };
}

/** A record is stored with its queue. */
function bulkActsOf(routes: Routes): BulkActVerbs {
  return {
    put: (change) => routes.of(change.queue).bulkActs.put(change),
    list: async () => {
      const all = await routes.each((engine) => engine.bulkActs.list());
      return new Map(all.flatMap((found) => [...found]));
    },
  };
}

/** An action is stored with its queue. A list merges those of all stores, by time. */
function actionsOf(routes: Routes): ActionVerbs {
  return {
    record: (action) =>
      (action.queue === null ? routes.first() : routes.of(action.queue)).actions.record(action),
    list: async (call) => {
      const answers = await routes.each((engine) => engine.actions.list(call));
      const all = answers.flatMap(({ actions }) => actions).toSorted((a, b) => compareActionIds(b.id, a.id));
      const last = all[call.limit - 1]?.id;
      if (last === undefined && answers.every(({ next }) => next === null))
        return { actions: all, next: null };
      // A store that stopped early has examined entries down to its `next` only.
      const nexts = answers.flatMap(({ next }) => (next === null ? [] : [next]));
      const end = [...nexts, ...(last === undefined ? [] : [last])].toSorted(compareActionIds).at(-1)!;
      // Entries of two stores with one id stay on one page, because the next page begins after that id.
      return { actions: all.filter(({ id }) => compareActionIds(id, end) >= 0), next: end };
    },
  };
}
