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
import type {
  Declaration,
  DeclarationVerbs,
  DeclareAnswer,
  DeclareCall,
  RenewAnswer,
} from '../contract/declaration-verbs.js';
import type { ProcessList, ProcessRecord, ProcessVerbs } from '../contract/process-verbs.js';
import { enqueue } from './enqueue.js';
import { exchange, note } from './exchange.js';
import { adopt, beat, overdue, recover, release } from './leases.js';
import { MemoryAdmin } from './memory-admin.js';
import { MemoryHeartbeat } from './memory-heartbeat.js';
import { MemorySchedules } from './memory-schedules.js';
import { MemoryStore } from './memory-store.js';
import { MemoryUpkeep } from './memory-upkeep.js';
import { nextTurn, Verbs, type MemorySettings } from './verbs.js';
import type { DispatchAnswer, TaskVerbs } from '../contract/task-verbs.js';
import { RULES } from '../job/rules.js';

export interface MemoryEngineOptions extends MemorySettings {
  /** Where the queues are; engines that share one see the same. @default one of its own, on the clock of the machine */
  readonly store?: MemoryStore;
}

/**
 * The engine without Redis: everything in the memory of one process, for development and for tests. What the verbs do and answer is
 * what they do and answer on Redis, in each case that can be seen through them: ids and duplicates, fenced settlements and their
 * repetitions, leases, stalls, priorities, delays, retention, counters, and events with their numbers.
 *
 * What differs by nature:
 * - Nothing is durable: what is in the store is gone with the process, and `durability` of adds has nobody to wait for.
 * - Workers and producers are in one process. Several engines are several "processes" only where they share a `MemoryStore`.
 * - There is no link that could go down, so no call ever fails for that, and there is nothing to warn of.
 * - The clock is the one that is given to the store. When a virtual one has moved, `clockMoved` has to be called: sleepers do not
 *   hear of it otherwise. Only bounded waits (`awaitBell`, `readEvents`) and the timer of the heartbeat are by the real clock.
 * - A verb that is a walk in steps on Redis (cleaning, retrying many dead jobs) is one step, and its events are one entry; trimming
 *   by number is exact.
 */
export class MemoryEngine implements QueueEngine {
  readonly admin: MemoryAdmin;
  readonly schedules: MemorySchedules;
  readonly upkeep: MemoryUpkeep;
  readonly declarations: MemoryDeclarations;
  readonly processes: MemoryProcesses;
  readonly tasks: MemoryTasks;
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
    this.schedules = new MemorySchedules(verbs);
    this.declarations = new MemoryDeclarations(verbs);
    this.processes = new MemoryProcesses(verbs);
    this.tasks = new MemoryTasks(verbs);
  }

  // ------------------------------------------------------------------------------------------------------- lifecycle

  /** There is nothing to connect to, so it is always there. */
  open(): Promise<boolean> {
    return this.verbs.run('open', () => true);
  }

  async close(): Promise<void> {
    this.verbs.close();
    await this.closeEvents();
    this.store.bells.hush(this);
    for (const heartbeat of this.heartbeats) await heartbeat.close();
  }

  /** Nothing comes up or goes down. */
  onLink(): () => void {
    return () => {};
  }

  /** There is no server that could keep less than is assumed. */
  onWarning(): () => void {
    return () => {};
  }

  now(): number {
    return this.store.clock.now();
  }

  /**
   * To be called by whoever owns the clock of the store, when it has moved: living workers renew their leases, and those are woken who
   * sleep until something is due.
   */
  clockMoved(): void {
    for (const heartbeat of this.heartbeats) heartbeat.clockMoved();
    for (const name of this.store.names) {
      const queue = this.store.at(name);
      if (queue.isAnythingDue) queue.ring();
    }
  }

  // -------------------------------------------------------------------------------------------------------- the work

  enqueue(queue: string, call: EnqueueCall): Promise<EnqueueAnswer> {
    return this.verbs.on('enqueue', queue, (q, limits) => enqueue(q, call, limits));
  }

  exchange(queue: string, call: ExchangeCall): Promise<ExchangeAnswer> {
    const { recordMs } = this.verbs;
    return this.verbs.on('exchange', queue, (q, limits) => exchange(q, call, limits, recordMs));
  }

  beat(queue: string, worker: string, leaseMs: number, heard = ''): Promise<BeatAnswer> {
    const { recordMs } = this.verbs;
    return this.verbs.on('beat', queue, (q) => beat(q, worker, { leaseMs, recordMs, heard }));
  }

  /** By a timer of this process. It is never null, so that nobody is warned of what cannot be otherwise here. */
  openHeartbeat(plan: HeartbeatPlan): Heartbeat {
    const vouch = (queue: string, worker: string) => this.store.at(queue).vouch(worker, this.verbs.recordMs);
    const heartbeat = new MemoryHeartbeat(this, plan, vouch, (closed) => this.heartbeats.delete(closed));
    this.heartbeats.add(heartbeat);
    plan.onReady();
    return heartbeat;
  }

  overdue(queue: string, withinMs: number): Promise<readonly { worker: string; endsInMs: number }[]> {
    return this.verbs.on('overdue', queue, (q) => overdue(q, withinMs, this.verbs.leaseMs));
  }

  recover(queue: string, call: RecoverCall): Promise<RecoverAnswer> {
    const { recordMs } = this.verbs;
    return this.verbs.on('recover', queue, (q, limits) => recover(q, call, limits, recordMs));
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

/** Queues of other programs, none of which can put anything into the memory of this one: there is never a task. */
class MemoryTasks implements TaskVerbs {
  constructor(private readonly verbs: Verbs) {}

  dispatch(): Promise<DispatchAnswer> {
    return this.verbs.run('dispatch', () => ({ dispatched: 0, delayed: 0, ready: 0, dueInMs: null }));
  }
}

/** Declarations in memory. */
class MemoryDeclarations implements DeclarationVerbs {
  constructor(private readonly verbs: Verbs) {}

  declare(queue: string, call: DeclareCall): Promise<DeclareAnswer> {
    return this.verbs.on('declare', queue, (q) => q.declarations.declare(call, q.now));
  }

  renew(queue: string, declaration: Declaration): Promise<RenewAnswer> {
    return this.verbs.on('renew', queue, (q) => q.declarations.renew(declaration, q.now));
  }

  withdraw(queue: string, declaration: Declaration): Promise<void> {
    return this.verbs.on('withdraw', queue, (q) => q.declarations.withdraw(declaration));
  }
}

/** Who works on a store in memory: whoever has it, so mostly one process. */
class MemoryProcesses implements ProcessVerbs {
  readonly server = 'memory';

  constructor(private readonly verbs: Verbs) {}

  register(record: ProcessRecord, leaseMs: number): Promise<void> {
    const { store } = this.verbs;
    return this.verbs.run('register', () => store.processes.register(record, leaseMs, store.clock.now()));
  }

  unregister(process: string): Promise<void> {
    return this.verbs.run('unregister', () => this.verbs.store.processes.unregister(process));
  }

  list(): Promise<ProcessList> {
    const { store } = this.verbs;
    return this.verbs.run('list', () => ({
      records: store.processes.living(store.clock.now()),
      unreadable: [],
    }));
  }

  ofWorker(worker: string): Promise<ProcessRecord | null> {
    return this.verbs.run('ofWorker', () => this.verbs.store.processes.ofWorker(worker));
  }
}
