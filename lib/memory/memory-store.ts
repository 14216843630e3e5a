import {
  compareActionIds,
  type ActionsAnswer,
  type ActionsCall,
  type NewAction,
  type StoredAction,
} from '../contract/actions.js';
import { RULES } from '../job/rules.js';
import {
  notReplaced,
  type LeadAnswer,
  type LeadCall,
  type ProcessList,
  type ProcessOrder,
  type ProcessRecord,
  type Registration,
} from '../contract/process-verbs.js';
import type { QueueEventBatch } from '../contract/engine.js';
import { boundedWait, MemoryBells, type BoundedWait } from './memory-bells.js';
import { MemoryQueue } from './memory-queue.js';

/** Where the time comes from, ms since 1970. */
interface Clock {
  now(): number;
}

interface Reader {
  readonly owner: object;
  readonly after: ReadonlyMap<string, number>;
  readonly wait: BoundedWait<void>;
}

/** All queues. Engines can share a store. It is lost when the process ends. */
export class MemoryStore {
  readonly bells = new MemoryBells();
  readonly processes = new ProcessBook();
  readonly actions = new ActionBook();
  /** id -> record: acts on many jobs. */
  readonly bulkActs = new Map<string, string>();
  /** Queues that jobs or schedules were added to or that a process works on, until they are obliterated. */
  readonly known = new Set<string>();
  private readonly queues = new Map<string, MemoryQueue>();
  private readonly readers = new Set<Reader>();
  private readonly janitors = new Map<string, number>();

  /** @param clock for due times, leases and retention. */
  constructor(readonly clock: Clock = Date) {}

  /** The queue, with `now` set to the current time. Called once per verb. */
  at(name: string): MemoryQueue {
    let queue = this.queues.get(name);
    if (!queue) {
      queue = new MemoryQueue(name, {
        ring: () => this.bells.ring(name),
        ringSooner: () => this.bells.ringSooner(name),
        clearBells: () => this.bells.clear(name),
        eventsWritten: () => this.wakeReaders((reader) => reader.after.has(name)),
      });
      this.queues.set(name, queue);
    }
    queue.now = Math.floor(this.clock.now());
    return queue;
  }

  get names(): readonly string[] {
    return [...this.queues.keys()];
  }

  /** Returns true for the first caller for these queues, and false for all others during this time. */
  claimUpkeep(queues: readonly string[], forMs: number): boolean {
    const now = this.clock.now();
    const group = queues.toSorted().join('\n');
    if ((this.janitors.get(group) ?? -Infinity) > now) return false;
    this.janitors.set(group, now + forMs);
    return true;
  }

  /** Resolves to the events after the given numbers. If there are none, waits for the first ones. */
  async readEvents(
    owner: object,
    after: ReadonlyMap<string, number>,
    blockMs: number,
  ): Promise<readonly QueueEventBatch[]> {
    const there = this.eventsAfter(after);
    if (there.length > 0) return there;
    const wait = boundedWait<void>(blockMs, undefined);
    const reader: Reader = { owner, after, wait };
    this.readers.add(reader);
    await wait.promise;
    this.readers.delete(reader);
    return this.eventsAfter(after);
  }

  /** Ends the reads of an engine. */
  endReads(owner: object): void {
    this.wakeReaders((reader) => reader.owner === owner);
  }

  private eventsAfter(after: ReadonlyMap<string, number>): QueueEventBatch[] {
    return [...after].flatMap(([name, number]) => this.queues.get(name)?.events.after(number) ?? []);
  }

  private wakeReaders(which: (reader: Reader) => boolean): void {
    for (const reader of this.readers) if (which(reader)) reader.wait.done();
  }
}

interface ProcessEntry {
  readonly record: ProcessRecord;
  readonly endsAt: number;
  readonly orders: readonly ProcessOrder[];
}

/** The records of worker processes, each valid for one lease. */
class ProcessBook {
  private readonly entries = new Map<string, ProcessEntry>();
  private leader: { readonly owner: string; readonly until: number; readonly state: string } | undefined;

  register(record: ProcessRecord, leaseMs: number, now: number): Registration {
    for (const [id, { endsAt }] of this.entries)
      if (endsAt <= now - RULES.rememberMs) this.entries.delete(id);
    // A copy, because the caller may change it.
    const entry = this.entries.get(record.id);
    const before = entry?.orders ?? [];
    const orders = before.slice(before.findIndex(({ id }) => id === record.obeyed) + 1);
    this.entries.set(record.id, { record: structuredClone(record), endsAt: now + leaseMs, orders });
    return { orders, hasLostData: false };
  }

  order(process: string, order: ProcessOrder, now: number): boolean {
    const entry = this.entries.get(process);
    if (!entry || entry.endsAt <= now) return false;
    const isKnown = entry.orders.some(({ id }) => id === order.id);
    if (!isKnown) this.entries.set(process, { ...entry, orders: [...entry.orders, order] });
    return true;
  }

  unregister(process: string): void {
    this.entries.delete(process);
  }

  living(now: number): ProcessRecord[] {
    const living = [...this.entries.values()].filter(({ endsAt }) => endsAt > now);
    return living.map(({ record }) => structuredClone(record));
  }

  silent(now: number): ProcessList['silent'] {
    const over = [...this.entries.values()].filter(
      ({ endsAt }) => endsAt <= now && endsAt > now - RULES.rememberMs,
    );
    const silent = over.map(({ record, endsAt }) => ({
      record: structuredClone(record),
      silentMs: now - endsAt,
    }));
    return notReplaced(silent, this.living(now));
  }

  lead({ owner, leaseMs, state }: LeadCall, now: number): LeadAnswer {
    const { leader } = this;
    if (leader && leader.owner !== owner && leader.until > now)
      return { isLeader: false, state: leader.state };
    const kept = state === '' ? (leader?.state ?? '') : state;
    this.leader = { owner, until: now + leaseMs, state: kept };
    return { isLeader: leaseMs > 0, state: kept };
  }

  /** The process of a worker, even after its lease has ended. */
  ofWorker(worker: string): ProcessRecord | null {
    for (const { record } of this.entries.values()) {
      if (record.pools.some(({ workers }) => workers.includes(worker))) return structuredClone(record);
    }
    return null;
  }
}

/** The record of what people did, the oldest first. */
class ActionBook {
  private readonly actions: StoredAction[] = [];

  record(action: NewAction, now: number): void {
    const last = this.actions.at(-1);
    // The time of ids never goes back, as in a stream of Redis.
    const at = Math.max(Math.floor(now), last?.at ?? 0);
    const sequence = last?.at === at ? Number(last.id.split('-')[1]) + 1 : 0;
    this.actions.push({ ...action, id: `${at}-${sequence}`, at });
    if (this.actions.length > RULES.actionsMax) this.actions.shift();
  }

  list({ before, limit, queue, actor }: ActionsCall): ActionsAnswer {
    const found = this.actions
      .toReversed()
      .filter(
        (one) =>
          (before === null || compareActionIds(one.id, before) < 0) &&
          (queue === undefined || one.queue === queue) &&
          (actor === undefined || one.actor === actor),
      );
    const actions = found.slice(0, limit);
    return { actions, next: found.length > limit ? actions.at(-1)!.id : null };
  }
}
