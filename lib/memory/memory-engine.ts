import {
  placeOf,
  SHARED,
  type GroupStates,
  type LimitState,
  type LimitVerbs,
  type RunReport,
  type RunReportAnswer,
} from '../contract/limit-verbs.js';
import type {
  AdoptAnswer,
  BeatAnswer,
  EnqueueAnswer,
  EnqueueCall,
  ExchangeAnswer,
  ExchangeCall,
  Heartbeat,
  HeartbeatPlan,
  NoteCall,
  QueueEngine,
  QueueEventBatch,
  QueueLook,
  RecoverAnswer,
  RecoverCall,
  ReleaseCall,
} from '../contract/engine.js';
import { NotRunningError } from '../errors.js';
import type { DeclarationVerbs } from '../contract/declaration-verbs.js';
import type { ProcessVerbs } from '../contract/process-verbs.js';
import type { ScheduleVerbs } from '../contract/schedule-verbs.js';
import { enqueue } from './enqueue.js';
import { exchange, note } from './exchange.js';
import { adopt, beat, overdue, recover, release } from './leases.js';
import { MemoryAdmin } from './memory-admin.js';
import { MemoryHeartbeat } from './memory-heartbeat.js';
import { scheduleVerbs } from './memory-schedules.js';
import { MemoryStore } from './memory-store.js';
import { MemoryUpkeep } from './memory-upkeep.js';
import { nextTurn, Verbs, type MemorySettings } from './verbs.js';
import type { BulkActVerbs } from '../contract/bulk-act-verbs.js';
import type { ActionVerbs } from '../contract/actions.js';
import type { TaskVerbs } from '../contract/task-verbs.js';
import { RULES } from '../job/rules.js';

interface MemoryEngineOptions extends MemorySettings {
  /** The queues. Engines with the same store share them. @default a new store on the system clock */
  readonly store?: MemoryStore;
}

/**
 * The engine without Redis: everything is in the memory of one process, for development and tests. Every verb does and answers the
 * same as on Redis: ids and duplicates, fenced settlements and their repetitions, leases, stalls, priorities, delays, retention,
 * counters, and numbered events. `test/model` compares both.
 *
 * Differences:
 * - Nothing is durable: the store is gone with the process, and `durability` of adds has no effect.
 * - Workers and producers are in one process. Several engines act as several processes only if they share a `MemoryStore`.
 * - No connection can break, so no call fails for that reason, and there are no warnings.
 * - The store takes the time from the clock it is given. After moving a virtual clock, call `clockMoved`, or sleeping workers do not
 *   notice. Bounded waits (`awaitBell`, `readEvents`) and the timer of the heartbeat use the real clock.
 * - Verbs that take several scripts on Redis (cleaning, retrying many dead jobs) are one step with one entry of events, and trimming
 *   by number is exact.
 */
export class MemoryEngine implements QueueEngine {
  readonly admin: MemoryAdmin;
  readonly schedules: ScheduleVerbs;
  readonly upkeep: MemoryUpkeep;
  readonly declarations: DeclarationVerbs;
  readonly processes: ProcessVerbs;
  readonly tasks: TaskVerbs;
  readonly limits: LimitVerbs;
  readonly actions: ActionVerbs;
  readonly bulkActs: BulkActVerbs;
  readonly store: MemoryStore;
  private readonly verbs: Verbs;
  private readonly heartbeats = new Set<MemoryHeartbeat>();
  private readsEvents = false;

  constructor({ store = new MemoryStore(), ...settings }: MemoryEngineOptions) {
    this.store = store;
    const verbs = new Verbs(store, settings);
    this.verbs = verbs;
    this.admin = new MemoryAdmin(verbs);
    this.upkeep = new MemoryUpkeep(verbs);
    this.schedules = scheduleVerbs(verbs);
    this.declarations = declarationVerbs(verbs);
    this.processes = processVerbs(verbs);
    this.tasks = taskVerbs(verbs);
    this.limits = limitVerbs(verbs);
    this.actions = actionVerbs(verbs);
    this.bulkActs = bulkActVerbs(verbs);
  }

  // ------------------------------------------------------------------------------------------------------- lifecycle

  /** There is nothing to connect to, so the engine is always available. */
  open(): Promise<boolean> {
    return this.verbs.run('open', () => true);
  }

  async close(): Promise<void> {
    this.verbs.close();
    await this.closeEvents();
    this.store.bells.hush(this);
    for (const heartbeat of this.heartbeats) await heartbeat.close();
  }

  /** No connection goes up or down. */
  onLink(): () => void {
    return () => {};
  }

  /** There is no server to warn about. */
  onWarning(): () => void {
    return () => {};
  }

  now(): number {
    return this.store.clock.now();
  }

  /**
   * The owner of the clock calls this after moving it. Live workers then renew their leases, and workers that sleep until a due
   * time wake.
   */
  clockMoved(): void {
    for (const heartbeat of this.heartbeats) heartbeat.clockMoved();
    for (const name of this.store.names) {
      const queue = this.store.at(name);
      if (queue.isAnythingDue) queue.ring();
    }
  }

  // -------------------------------------------------------------------------------------------------------- the work

  async checkQueue(): Promise<void> {
    // There is only one version in one process, so nothing can differ.
  }

  enqueue(queue: string, call: EnqueueCall): Promise<EnqueueAnswer> {
    return this.verbs.on('enqueue', queue, (q, limits) => {
      const answer = enqueue(q, call, limits);
      this.verbs.store.known.add(queue);
      return answer;
    });
  }

  exchange(queue: string, call: ExchangeCall): Promise<ExchangeAnswer> {
    return this.verbs.on('exchange', queue, (q, limits) => exchange(q, call, limits));
  }

  beat(queue: string, worker: string, leaseMs: number): Promise<BeatAnswer> {
    return this.verbs.on('beat', queue, (q) => beat(q, worker, leaseMs));
  }

  /** Uses a timer. It is never null, because that would log a warning about the missing heartbeat thread. */
  openHeartbeat(plan: HeartbeatPlan): Heartbeat {
    const vouch = (queue: string, worker: string) => this.store.at(queue).vouch(worker);
    const heartbeat = new MemoryHeartbeat(this, plan, vouch, (closed) => this.heartbeats.delete(closed));
    this.heartbeats.add(heartbeat);
    plan.onReady();
    return heartbeat;
  }

  overdue(queue: string, withinMs: number): Promise<readonly { worker: string; endsInMs: number }[]> {
    return this.verbs.on('overdue', queue, (q, { leaseMs }) => overdue(q, withinMs, leaseMs));
  }

  recover(queue: string, call: RecoverCall): Promise<RecoverAnswer> {
    return this.verbs.on('recover', queue, (q, limits) => recover(q, call, limits));
  }

  adopt(queue: string, worker: string, known: readonly string[]): Promise<AdoptAnswer> {
    return this.verbs.on('adopt', queue, (q) => adopt(q, worker, known));
  }

  release(queue: string, call: ReleaseCall): Promise<{ lost: readonly string[] }> {
    return this.verbs.on('release', queue, (q, limits) => release(q, call, limits));
  }

  promote(queue: string, limit: number): Promise<{ promoted: number; dueInMs: number | null }> {
    return this.verbs.on('promote', queue, (q) => {
      const promoted = q.promoteDue(Math.min(limit, RULES.claimMax));
      if (promoted > 0) q.ring();
      return { promoted, dueInMs: q.dueInMs };
    });
  }

  note(queue: string, call: NoteCall): Promise<boolean> {
    return this.verbs.on('note', queue, (q, limits) => note(q, call, limits));
  }

  // ------------------------------------------------------------------------------------------------ waking and events

  async awaitBell(queues: readonly string[], maxMs: number): Promise<string | null> {
    if (this.verbs.isClosed) throw new NotRunningError('awaitBell');
    const rung = await this.store.bells.await(this, queues, maxMs);
    await nextTurn();
    return rung;
  }

  interruptBell(): void {
    this.store.bells.interrupt(this);
  }

  ring(queue: string): Promise<void> {
    return this.verbs.on('ring', queue, (q) => q.ring());
  }

  look(sleepers: readonly { queue: string; worker: string }[]): Promise<readonly QueueLook[]> {
    return this.verbs.run('look', () =>
      sleepers.map(({ queue, worker }) => this.store.at(queue).look(worker)).filter((look) => look !== null),
    );
  }

  lastEvent(queue: string): Promise<number> {
    return this.verbs.on('lastEvent', queue, (q) => q.events.last);
  }

  async readEvents(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    if (!this.readsEvents) throw new NotRunningError('readEvents');
    const batches = await this.store.readEvents(this, after, blockMs);
    return this.verbs.run('readEvents', () => batches);
  }

  interruptEvents(): void {
    this.store.endReads(this);
  }

  openEvents(): Promise<void> {
    return this.verbs.run('openEvents', () => void (this.readsEvents = true));
  }

  async closeEvents(): Promise<void> {
    this.readsEvents = false;
    this.store.endReads(this);
  }
}

/** Other programs cannot write into this memory, so there is never a task to dispatch. */
function taskVerbs(verbs: Verbs): TaskVerbs {
  return {
    dispatch: () => verbs.run('dispatch', () => ({ dispatched: 0, delayed: 0, ready: 0, dueInMs: null })),
  };
}

/** Declarations in memory. */
function declarationVerbs(verbs: Verbs): DeclarationVerbs {
  return {
    declare: (queue, call) => verbs.on('declare', queue, (q) => q.declarations.declare(call, q.now)),
    renew: (queue, declaration) => verbs.on('renew', queue, (q) => q.declarations.renew(declaration, q.now)),
    withdraw: (queue, declaration) =>
      verbs.on('withdraw', queue, (q) => q.declarations.withdraw(declaration)),
  };
}

/** The processes that share a store: normally this one. */
function processVerbs(verbs: Verbs): ProcessVerbs {
  const { processes, clock, known } = verbs.store;
  return {
    server: 'memory',
    register: (record, leaseMs) =>
      verbs.run('register', () => processes.register(record, leaseMs, clock.now())),
    order: (process, order) => verbs.run('order', () => processes.order(process, order, clock.now())),
    unregister: (process) => verbs.run('unregister', () => processes.unregister(process)),
    list: () =>
      verbs.run('list', () => {
        const now = clock.now();
        return { records: processes.living(now), silent: processes.silent(now), unreadable: [] };
      }),
    ofWorker: (worker) => verbs.run('ofWorker', () => processes.ofWorker(worker)),
    worksOn: (queues) => verbs.run('queues', () => queues.forEach((queue) => known.add(queue))),
    queues: () => verbs.run('queues', () => [...known]),
    lead: (call) => verbs.run('lead', () => processes.lead(call, clock.now())),
  };
}

/** The record of what people did, in memory. */
function actionVerbs(verbs: Verbs): ActionVerbs {
  const { store } = verbs;
  return {
    record: (action) => verbs.run('record', () => store.actions.record(action, store.clock.now())),
    list: (call) => verbs.run('actions', () => store.actions.list(call)),
  };
}

/** The records of acts on many jobs, in memory. They end with the process, so none has to expire. */
function bulkActVerbs(verbs: Verbs): BulkActVerbs {
  const { bulkActs } = verbs.store;
  return {
    put: ({ id, before, after }) =>
      verbs.run('putBulkAct', () => {
        if ((bulkActs.get(id) ?? '') !== before) return false;
        if (after === '') bulkActs.delete(id);
        else bulkActs.set(id, after);
        return true;
      }),
    list: () => verbs.run('bulkActs', () => new Map(bulkActs)),
  };
}

/** The verbs of limits on queues in memory. */
function limitVerbs(verbs: Verbs): LimitVerbs {
  return {
    set: (queue, field, part, rule) =>
      verbs.on('limits', placeOf(queue, field), (q) => q.limits.set(field, part, rule)),
    wakeLines: (queue) => verbs.on('limits', queue, (q) => q.limits.wakeLines()),
    charge: async (queue, changes) => {
      const places = [...new Set(changes.map(({ field }) => placeOf(queue, field)))];
      const of = (place: string) => changes.filter(({ field }) => placeOf(queue, field) === place);
      await Promise.all(places.map((place) => verbs.on('limits', place, (q) => q.limits.charge(of(place)))));
    },
    report: (queue, reports) => report(verbs, queue, reports),
    share: (queue, call) => verbs.on('limits', SHARED, (q) => q.limits.shares.share(queue, call, q.now)),
    shared: () => verbs.on('limits', SHARED, (q) => q.limits.shared()),
    list: (queue) => verbs.on('limits', queue, (q) => q.limits.list()),
    overview: (queue) =>
      verbs.on('limits', queue, (q) => ({ limits: q.limits.list(), groups: q.limits.groupCounts() })),
    group: (queue, group) => verbs.on('limits', queue, (q) => q.limits.stateOf(`g:${group}`)),
    groups: (queue, cursor, limit) =>
      verbs.on('limits', queue, (q) => pageOf(q.limits.groups(), cursor, limit)),
    stoppedGroups: (queue, cursor, limit) =>
      verbs.on('limits', queue, (q) => pageOf(q.limits.stoppedGroups(), cursor, limit)),
    ruledGroups: (queue, cursor, limit) =>
      verbs.on('limits', queue, (q) => pageOf(q.limits.ruledGroups(), cursor, limit)),
  };
}

function pageOf(all: readonly LimitState[], cursor: string, limit: number): GroupStates {
  const from = Number(cursor);
  const next = from + limit < all.length ? String(from + limit) : null;
  return { groups: all.slice(from, from + limit), next };
}

/** Reports to the limits of a queue and to shared limits. The events of shared limits go to all queues that use them. */
async function report(verbs: Verbs, queue: string, reports: readonly RunReport[]) {
  const answers = new Map<RunReport, RunReportAnswer>();
  const at = async (place: string) => {
    const some = reports.filter(({ field }) => placeOf(queue, field) === place);
    if (some.length === 0) return [];
    return verbs.on('limits', place, (q, limits) => {
      const done = q.limits.report(some);
      for (const [i, one] of some.entries()) answers.set(one, done.answers[i]!);
      if (place === queue) q.say(done.says, limits);
      return done.says.map((say) => ({ say, users: q.limits.shares.users(say.reason ?? '', q.now) }));
    });
  };
  await at(queue);
  for (const { say, users } of await at(SHARED))
    for (const user of new Set([queue, ...users]))
      await verbs.on('limits', user, (q, limits) => {
        q.say([say], limits);
        if (say.type === 'breakerClosed') q.ring();
      });
  return reports.map((one) => answers.get(one)!);
}
