import type {
  DueAnswer,
  PutSchedule,
  ResumeSchedule,
  SchedulePage,
  StoredSchedule,
} from '../contract/schedule-verbs.js';
import type { Mutable } from '../contract/stats.js';
import { RULES } from '../job/rules.js';
import { byBytes } from './lines.js';

export type ScheduleEntry = Mutable<StoredSchedule>;

/** The schedules of one queue. Every change gives a schedule a new revision. */
export class ScheduleBook {
  private readonly entries = new Map<string, ScheduleEntry>();
  /** One counter for all schedules, so that a new schedule is never mistaken for a removed one with the same id. */
  private revisions = 0;
  /** Schedules with a next time, in order, until something changes. */
  private ordered: readonly ScheduleEntry[] | null = null;

  /** @param ring wakes a worker: idle workers sleep until the first time they know of. */
  constructor(private readonly ring: () => void) {}

  get(id: string): ScheduleEntry | undefined {
    return this.entries.get(id);
  }

  /** The earliest next time, even if it has passed. Null if there is none. */
  get firstAt(): number | null {
    return this.timed()[0]?.nextAt ?? null;
  }

  page({ offset, limit }: { readonly offset: number; readonly limit: number }): SchedulePage {
    const all = [...this.entries.values()];
    all.sort((a, b) => a.createdAt - b.createdAt || byBytes(a.id, b.id));
    return { total: all.length, schedules: all.slice(offset, offset + limit).map((entry) => ({ ...entry })) };
  }

  due(now: number, offset: number): DueAnswer {
    const due = this.timed().filter(({ nextAt }) => nextAt! <= now);
    const page = due.slice(offset, offset + RULES.dueSchedulesMax).map((entry) => ({ ...entry }));
    return { now, due: page, nextInMs: this.nextInMs(now) };
  }

  /** How many are due, and the ms until the first one that is not. */
  outlook(now: number): { readonly due: number; readonly nextInMs: number | null } {
    const due = this.timed().filter(({ nextAt }) => nextAt! <= now).length;
    return { due, nextInMs: this.nextInMs(now) };
  }

  put({ id, revision, record, nextAt }: PutSchedule, now: number): 'written' | 'changed' {
    const there = this.entries.get(id);
    if ((there?.revision ?? 0) !== revision) return 'changed';
    const entry = there ?? this.added(id, now);
    entry.record = record;
    this.touch(entry);
    // A paused schedule stays paused when a release declares it again.
    if (entry.mode !== 'paused' && nextAt !== 'keep') this.setNext(entry, nextAt);
    return 'written';
  }

  remove(id: string): boolean {
    this.ordered = null;
    return this.entries.delete(id);
  }

  pause(id: string): 'paused' | 'unchanged' | 'not-found' {
    const entry = this.entries.get(id);
    if (!entry) return 'not-found';
    if (entry.mode !== 'running') return 'unchanged';
    entry.mode = 'paused';
    entry.nextAt = null;
    this.touch(entry);
    return 'paused';
  }

  resume({ id, revision, nextAt }: ResumeSchedule): 'resumed' | 'unchanged' | 'changed' | 'not-found' {
    const entry = this.entries.get(id);
    if (!entry) return 'not-found';
    if (entry.mode !== 'paused') return 'unchanged';
    if (entry.revision !== revision) return 'changed';
    this.touch(entry);
    this.setNext(entry, nextAt);
    return 'resumed';
  }

  /** Called after an occurrence: the next one is at `nextAt`. Null: the schedule has ended. */
  moveOn(entry: ScheduleEntry, nextAt: number | null): void {
    this.touch(entry);
    this.setNext(entry, nextAt);
  }

  /** Called when the queue was obliterated. */
  clear(): void {
    this.entries.clear();
    this.ordered = null;
  }

  private added(id: string, createdAt: number): ScheduleEntry {
    const counters = {
      revision: 0,
      mode: 'running',
      nextAt: null,
      fired: 0,
      lastAt: null,
      lastJob: null,
    } as const;
    const entry: ScheduleEntry = { id, record: '', createdAt, recent: [], ...counters };
    this.entries.set(id, entry);
    return entry;
  }

  private touch(entry: ScheduleEntry): void {
    this.revisions += 1;
    entry.revision = this.revisions;
    this.ordered = null;
  }

  private setNext(entry: ScheduleEntry, at: number | null): void {
    const { firstAt } = this;
    entry.mode = at === null ? 'ended' : 'running';
    entry.nextAt = at;
    this.ordered = null;
    if (at !== null && (firstAt === null || at < firstAt)) this.ring();
  }

  private nextInMs(now: number): number | null {
    const next = this.timed().find(({ nextAt }) => nextAt! > now);
    return next ? Math.ceil(next.nextAt! - now) : null;
  }

  private timed(): readonly ScheduleEntry[] {
    this.ordered ??= [...this.entries.values()]
      .filter(({ nextAt }) => nextAt !== null)
      .toSorted((a, b) => a.nextAt! - b.nextAt! || byBytes(a.id, b.id));
    return this.ordered;
  }
}
