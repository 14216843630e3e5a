import { DEFAULT_CONNECTION } from '../options/connection.js';
import type {
  AdoptAnswer,
  BeatAnswer,
  ExchangeCall,
  Heartbeat,
  HeartbeatPlan,
  LinkEvent,
  NoteCall,
  QueueEngine,
  QueueEventBatch,
  QueueLook,
  RecoverAnswer,
  RecoverCall,
  ReleaseCall,
  RungClaim,
  ServerWarning,
} from '../contract/engine.js';
import { RULES } from '../job/rules.js';
import { Bells } from './wake/bells.js';
import type { EngineSettings } from './wire/clients.js';
import { Connections } from './wire/connections.js';
import { openHeartbeatThread } from './heartbeat.js';
import { EventStreams } from './event-streams.js';
import { IdlePoller } from './wake/idle-poller.js';
import { RedisAdds } from './redis-adds.js';
import { RedisAdmin } from './redis-admin.js';
import { RedisDeclarations, RedisSchedules } from './redis-schedules.js';
import { RedisExchanges } from './redis-exchanges.js';
import { RedisLimits } from './redis-limits.js';
import { RedisNotes } from './redis-notes.js';
import { RedisUpkeep } from './redis-upkeep.js';
import { RedisActions, RedisBulkActs, RedisProcesses } from './redis-processes.js';
import { Replicators } from './wire/replicator.js';
import { RedisStore } from './redis-store.js';
import { RedisTasks } from './redis-tasks.js';
import type { Link } from './wire/link.js';
import { nameOfServer, ServerWarnings } from './wire/server-check.js';
import { adopt, promote, release } from './scripts/work.js';
import { beat, overdue, recover } from './scripts/leases.js';

/**
 * The engine on Redis: one script per verb. It has one connection for commands, one that blocks, and one for events while they
 * are read. On Redis Cluster it has one for commands per master, and the other two for each queue.
 */
export class RedisEngine implements QueueEngine {
  readonly admin: RedisAdmin;
  readonly schedules: RedisSchedules;
  readonly upkeep: RedisUpkeep;
  readonly declarations: RedisDeclarations;
  readonly processes: RedisProcesses;
  readonly tasks: RedisTasks;
  readonly actions: RedisActions;
  readonly bulkActs: RedisBulkActs;
  readonly limits: RedisLimits;
  readonly enqueue: RedisAdds['enqueue'];
  readonly exchange: RedisExchanges['exchange'];
  private readonly connections: Connections;
  private readonly store: RedisStore;
  private readonly exchanges: RedisExchanges;
  private readonly notes: RedisNotes;
  private readonly bells: Bells;
  private readonly poller: IdlePoller;
  private readonly streams: EventStreams;
  private readonly replicators: Replicators;
  private readonly warnings: ServerWarnings;

  constructor(private readonly settings: EngineSettings) {
    const { connection = DEFAULT_CONNECTION, prefix, callMs } = settings;
    const connections = new Connections(connection, prefix, 'command', undefined, settings.internal);
    const keyOf = (queue: string) => this.store.keysOf(queue).fixed.meta;
    this.connections = connections;
    this.warnings = new ServerWarnings(settings.replicasAsked);
    connections.onRefusal = this.warnings.refused;
    this.store = new RedisStore(
      prefix,
      callMs,
      (info) => {
        this.warnings.check(info);
        this.processes.server = nameOfServer(info);
      },
      (greet) => connections.commands((link) => this.greet(link, greet)),
      settings.queues,
    );
    this.admin = new RedisAdmin(this.store, settings, (queue, call) => this.recover(queue, call));
    this.upkeep = new RedisUpkeep(prefix, this.store, settings, () => connections.isCluster);
    this.processes = new RedisProcesses(this.store);
    this.tasks = new RedisTasks(this.store);
    this.actions = new RedisActions(this.store);
    this.bulkActs = new RedisBulkActs(this.store);
    this.limits = new RedisLimits(this.store, this.settings);
    this.bells = new Bells(prefix, this.store, connections.forQueues('blocking', keyOf));
    this.poller = new IdlePoller(this.store, () => this.bells.perQueue);
    this.schedules = new RedisSchedules(this.store, settings, (queues) =>
      this.bells.anyOf(queues, ['upcoming']),
    );
    this.declarations = new RedisDeclarations(this.store);
    this.replicators = new Replicators(connections.forQueues('replicated', keyOf), callMs);
    this.enqueue = new RedisAdds(this.store, this.replicators, settings).enqueue;
    this.exchanges = new RedisExchanges(this.store, this.bells, settings, (queue, deaths) =>
      this.upkeep.died(queue, deaths),
    );
    this.exchange = this.exchanges.exchange;
    this.notes = new RedisNotes(this.store, settings);
    this.streams = new EventStreams(prefix, this.store, () => connections.forQueues('events', keyOf));
  }

  // ------------------------------------------------------------------------------------------------------- lifecycle

  open(): Promise<boolean> {
    return this.store.open();
  }

  async checkQueue(queue: string): Promise<void> {
    await this.store.checkQueue(queue);
  }

  async close(): Promise<void> {
    await Promise.all([this.bells.close(), this.streams.end(), this.replicators.close()]);
    await this.store.close();
    await this.connections.close();
  }

  private async greet(link: Link, greet: (link: Link) => Promise<void>): Promise<void> {
    const { events } = this.store.keysOf('').fixed;
    await Promise.all([greet(link), this.warnings.tryEvent(link, events, this.settings.callMs)]);
  }

  onLink(listener: (event: LinkEvent) => void): () => void {
    return this.connections.onLink(listener);
  }

  onWarning(listener: (warning: ServerWarning) => void): () => void {
    return this.warnings.listen(listener);
  }

  now(): number {
    return this.store.now();
  }

  // -------------------------------------------------------------------------------------------------------- the work

  beat(queue: string, worker: string, leaseMs: number): Promise<BeatAnswer> {
    return this.store.run(beat, this.store.keysOfWorker(queue, worker), {
      worker,
      leaseMs,
    });
  }

  openHeartbeat(plan: HeartbeatPlan): Heartbeat | null {
    const { tell } = this.connections;
    return openHeartbeatThread(plan, this.settings, (queue) => this.store.keysOf(queue), tell);
  }

  overdue(queue: string, withinMs: number): Promise<{ worker: string; endsInMs: number }[]> {
    return this.store.run(overdue, this.store.keysOf(queue).fixed, {
      withinMs,
      leaseMs: this.settings.limitsOf(queue).leaseMs,
    });
  }

  async recover(queue: string, call: RecoverCall): Promise<RecoverAnswer> {
    const { maxEvents, deadMax, deadAgeMs } = this.settings.limitsOf(queue);
    const answer = await this.store.run(recover, this.store.keysOfWorker(queue, call.worker), {
      ...call,
      limit: RULES.recoverMax,
      maxEvents,
      deadMax,
      deadAge: deadAgeMs,
    });
    if (answer.kind === 'recovered') this.upkeep.died(queue, answer.dead.length);
    return answer;
  }

  adopt(queue: string, worker: string, known: readonly string[]): Promise<AdoptAnswer> {
    const { maxEvents } = this.settings.limitsOf(queue);
    const keys = this.store.keysOfWorker(queue, worker);
    return this.store.run(adopt, keys, { maxEvents }, { known });
  }

  release(queue: string, { worker, ids, leave }: ReleaseCall): Promise<{ lost: readonly string[] }> {
    return this.store.run(
      release,
      this.store.keysOfWorker(queue, worker),
      { worker, leave: leave ? 1 : 0, maxEvents: this.settings.limitsOf(queue).maxEvents },
      { ids },
    );
  }

  promote(queue: string, limit: number): Promise<{ promoted: number; dueInMs: number | null }> {
    return this.store.run(promote, this.store.keysOf(queue).fixed, { limit });
  }

  note(queue: string, call: NoteCall): Promise<boolean> {
    const { id, data } = call;
    if (data !== undefined) return this.admin.updateHeld(queue, call.worker, { id, data });
    return this.notes.note(queue, call);
  }

  // ------------------------------------------------------------------------------------------------ waking and events

  awaitBell(queues: readonly string[], maxMs: number): Promise<string | null> {
    return this.bells.await(queues, maxMs);
  }

  claimAtBell(queue: string, call: ExchangeCall, maxMs: number): Promise<RungClaim> | null {
    return this.exchanges.claimAtBell(queue, call, maxMs);
  }

  interruptBell(): void {
    this.bells.interrupt();
  }

  ring(queue: string): Promise<void> {
    return this.bells.ring(queue);
  }

  look(sleepers: readonly { queue: string; worker: string }[]): Promise<readonly QueueLook[]> {
    return this.poller.look(sleepers);
  }

  lastEvent(queue: string): Promise<number> {
    return this.streams.last(queue);
  }

  readEvents(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    return this.streams.read(after, blockMs);
  }

  interruptEvents(): void {
    this.streams.interrupt();
  }

  openEvents(): Promise<void> {
    return this.streams.open();
  }

  closeEvents(): Promise<void> {
    return this.streams.close();
  }
}
