import type { ClaimedJob, RawEvent } from '#lib/contract/engine.js';
import { byFirst, roundUp, type State } from './state.js';

export interface ModelLimits {
  readonly leaseMs: number;
  readonly recordMs: number;
  readonly deadMax: number;
  readonly deadAgeMs: number;
  readonly completedMax: number;
}

export interface Lane {
  readonly seq: number;
  readonly duplicates: readonly string[];
  readonly rememberMs: number;
  readonly until: number;
}

/** What is remembered of a worker. Without `seq` it is not known any more. */
export interface WorkerRecord {
  seq?: number;
  gave?: readonly string[];
  lost?: readonly string[];
  /** The last exchange that went beside others. */
  beside?: { readonly seq: number; readonly gave: readonly string[]; readonly lost: readonly string[] };
  doubt?: string;
  pause?: string;
  /** How long its leases are. */
  leaseMs?: number;
  until: number;
}

export type ModelEvent = Pick<RawEvent, 'number' | 'type' | 'id' | 'name' | 'attempt' | 'reason'>;
export interface Saying {
  readonly type: RawEvent['type'];
  readonly id: string;
  readonly name?: string;
  readonly attempt?: number;
  readonly reason?: string;
  /** It has a number, but did not happen. */
  readonly skipped?: boolean;
}

const RANKS = 4_294_967_296;
const CANCELLED_MS = 60_000;

/** What a queue should be: plain collections, and the moves that several verbs share. */
export class QueueModel {
  now = 1_900_000_000_000;
  pausedAt: number | null = null;
  jobs = new Map<string, string>();
  wait: string[] = [];
  suspects: string[] = [];
  prioritized = new Map<string, number>();
  delayed = new Map<string, number>();
  priorities = new Map<string, number>();
  attempts = new Map<string, number>();
  stalls = new Map<string, number>();
  failures = new Map<string, string>();
  dead = new Map<string, number>();
  completed = new Map<string, number>();
  results = new Map<string, string>();
  progress = new Map<string, string>();
  logs = new Map<string, string>();
  /** Why, of active jobs that were cancelled. */
  toCancel = new Map<string, string>();
  /** When and why, of jobs that ended so. */
  cancelled = new Map<string, string>();
  cancelledUntil = 0;
  active = new Map<string, Set<string>>();
  leases = new Map<string, number>();
  records = new Map<string, WorkerRecord>();
  lanes = new Map<string, Lane>();
  /** Each wakes one worker. */
  readonly bells = new Set<string>();
  tallies = new Map<string, number>();
  ranks = 0;
  lastEvent = 0;
  /** Said since they were last taken. */
  said: ModelEvent[] = [];

  constructor(readonly limits: ModelLimits) {}

  held(worker: string): Set<string> {
    let ids = this.active.get(worker);
    if (!ids) this.active.set(worker, (ids = new Set()));
    return ids;
  }

  // ------------------------------------------------------------------------------------------------------ shared moves

  nextRank(priority: number): number {
    this.ranks += 1;
    return priority * RANKS + (this.ranks % RANKS);
  }

  firstOf(zset: Map<string, number>): [string, number] | undefined {
    return sorted(zset)[0];
  }

  ring(): void {
    this.bells.add('work');
  }

  /** A job is due before all others. */
  ringSooner(): void {
    this.bells.add('work').add('due');
  }

  dueInMs(): number | null {
    const first = this.firstOf(this.delayed);
    return first ? Math.max(0, Math.floor(first[1]) - this.now) : null;
  }

  /** Of a job that has an id of its own, behind all that are due at the same ms. */
  delay(id: string, dueAt: number): void {
    const ofThen = [...this.delayed.values()].filter((at) => Math.floor(at) === dueAt);
    this.delayed.set(
      id,
      /^.{18}[A-Z]$/.test(id) || ofThen.length === 0 ? dueAt : Math.max(...ofThen) + 1 / 2048,
    );
  }

  promoteDue(limit: number): number {
    const due = sorted(this.delayed)
      .filter(([, at]) => at < this.now + 1)
      .slice(0, limit);
    for (const [id] of due) {
      this.delayed.delete(id);
      const priority = this.priorities.get(id);
      this.priorities.delete(id);
      if (priority === undefined) this.wait.push(id);
      else this.prioritized.set(id, this.nextRank(priority));
    }
    return due.length;
  }

  toHead(ids: readonly string[]): void {
    const isSuspect = (id: string) => (this.stalls.get(id) ?? 0) >= 2;
    this.wait.unshift(...ids.filter((id) => !isSuspect(id)));
    this.suspects.unshift(...ids.filter(isSuspect));
  }

  bury(id: string, failure: string): void {
    this.dead.set(id, this.now);
    this.failures.set(id, `${this.now}\n${failure}`);
  }

  /** Dead jobs that are too old, else those that are too many. */
  trimDead(): Saying[] {
    const all = sorted(this.dead);
    let gone = all.filter(([, at]) => at <= this.now - this.limits.deadAgeMs);
    if (gone.length === 0) gone = all.slice(0, Math.max(0, all.length - this.limits.deadMax));
    const says = gone.map(([id]): Saying => ({
      type: 'removed',
      id,
      name: this.nameOf(id),
      reason: 'retention',
    }));
    for (const [id] of gone) {
      this.dead.delete(id);
      this.jobs.delete(id);
      for (const map of [this.attempts, this.stalls, this.failures, this.progress, this.logs]) map.delete(id);
    }
    return says;
  }

  /** Those whose retention is over, else those that are too many. */
  trimCompleted(): void {
    const all = sorted(this.completed);
    let gone = all.filter(([, until]) => until <= this.now);
    if (gone.length === 0) gone = all.slice(0, Math.max(0, all.length - this.limits.completedMax));
    for (const [id] of gone) {
      this.retire(id);
      this.jobs.delete(id);
    }
  }

  forgetTraces(id: string): void {
    const { attempts, stalls, failures, progress, logs, priorities, toCancel } = this;
    for (const map of [attempts, stalls, failures, progress, logs, priorities, toCancel]) map.delete(id);
  }

  /** Jobs end as cancelled; those that ran have begun one attempt more than have failed. */
  endCancelled(ids: readonly string[], reasonOf: (id: string) => string, begun: 0 | 1): Saying[] {
    return ids.map((id) => {
      const reason = reasonOf(id);
      const attempt = (this.attempts.get(id) ?? 0) + begun;
      const says: Saying = { type: 'cancelled', id, name: this.nameOf(id), attempt, reason };
      this.forget(id);
      this.tally('cancelled', 1);
      this.cancelled.set(id, `${this.now}\n${reason}`);
      this.cancelledUntil = this.now + CANCELLED_MS;
      return says;
    });
  }

  /** Those of the jobs that were cancelled while they ran end; answers the others, and what is said. */
  withoutCancelled(ids: readonly string[]): { others: string[]; ended: string[]; says: Saying[] } {
    const ended = ids.filter((id) => this.toCancel.has(id));
    const says = this.endCancelled(ended, (id) => this.toCancel.get(id)!, 1);
    return { others: ids.filter((id) => !ended.includes(id)), ended, says };
  }

  forget(id: string): void {
    this.jobs.delete(id);
    this.forgetTraces(id);
  }

  /** A completed job whose retention is over. */
  retire(id: string): void {
    for (const map of [this.completed, this.results, this.failures, this.progress, this.logs]) map.delete(id);
  }

  tally(field: string, count: number): void {
    if (count > 0) this.tallies.set(field, (this.tallies.get(field) ?? 0) + count);
  }

  /** The same for one job name. */
  tallyName(field: string, name: string, count = 1): void {
    this.tally(`${field}:${name}`, count);
  }

  nameOf(id: string): string {
    const body = this.jobs.get(id);
    return body?.includes('\n') ? body.slice(0, body.indexOf('\n')) : '';
  }

  say(says: readonly Saying[]): void {
    for (const { type, id, name = '', attempt = 1, reason = '', skipped } of says) {
      this.lastEvent += 1;
      if (!skipped) this.said.push({ number: this.lastEvent, type, id, name, attempt, reason });
    }
  }

  takeSaid(): ModelEvent[] {
    const { said } = this;
    this.said = [];
    return said;
  }

  /** Moves the clock; what had a time to live ends. Answers the keys that end. */
  advance(ms: number): string[] {
    this.now += ms;
    const over: string[] = [];
    for (const [lane, { until }] of this.lanes) if (until <= this.now) over.push(`lane:${lane}`);
    for (const [worker, { until }] of this.records) if (until <= this.now) over.push(`worker:${worker}`);
    if (this.cancelled.size > 0 && this.cancelledUntil <= this.now) {
      over.push('cancelled');
      this.cancelled.clear();
    }
    for (const key of over) {
      const name = key.slice(key.indexOf(':') + 1);
      if (key.startsWith('lane:')) this.lanes.delete(name);
      else if (key.startsWith('worker:')) this.records.delete(name);
    }
    return over;
  }

  // ------------------------------------------------------------------------------------------------------------ states

  state(): State {
    const out: Record<string, unknown> = {};
    const hash = (name: string, map: Map<string, string | number>) => {
      if (map.size > 0)
        out[name] = { hash: [...map].map(([k, v]): [string, string] => [k, String(v)]).toSorted(byFirst) };
    };
    const zset = (name: string, map: Map<string, number>) => {
      if (map.size > 0) out[name] = { zset: sorted(map).map(([k, v]) => [k, String(v)]) };
    };
    const { jobs, attempts, stalls, failures, results, progress, logs, priorities, tallies } = this;
    const { toCancel, cancelled } = this;
    for (const [worker, ids] of this.active)
      if (ids.size > 0) out[`active:${worker}`] = { set: [...ids].toSorted() };
    for (const [name, map] of Object.entries({
      attempts,
      toCancel,
      cancelled,
      failures,
      jobs,
      logs,
      priorities,
      progress,
      results,
      stalls,
    }))
      hash(name, map);
    if (cancelled.size > 0)
      out['cancelled'] = { ...(out['cancelled'] as object), until: roundUp(CANCELLED_MS) };
    const { completed, dead, delayed, prioritized, leases } = this;
    for (const [name, map] of Object.entries({ completed, dead, delayed, prioritized, workers: leases }))
      zset(name, map);
    if (this.bells.size > 0)
      out['doorbell'] = { zset: [...this.bells].toSorted().map((bell) => [bell, '0']) };
    for (const [lane, { seq, duplicates, rememberMs }] of this.lanes)
      out[`lane:${lane}`] = { string: [`${seq}\n${duplicates.join('\n')}`], until: roundUp(rememberMs) };
    const meta = new Map<string, number>();
    if (this.lastEvent > 0) meta.set('events', this.lastEvent);
    if (this.ranks > 0) meta.set('ranks', this.ranks);
    if (this.pausedAt !== null) meta.set('paused', this.pausedAt);
    hash('meta', meta);
    for (const line of ['suspects', 'wait'] as const)
      if (this[line].length > 0) out[line] = { list: this[line] };
    for (const [worker, record] of this.records) out[`worker:${worker}`] = this.recordState(record);
    hash('stats', tallies);
    return Object.fromEntries(
      Object.keys(out)
        .toSorted()
        .map((key) => [key, out[key]]),
    );
  }

  private recordState({ seq, gave, lost, beside, doubt, leaseMs, pause }: WorkerRecord): unknown {
    const fields: [string, string][] = [];
    if (doubt !== undefined) fields.push(['doubt', doubt]);
    if (seq !== undefined)
      fields.push(['gave', gave!.join('\n')], ['lost', lost!.join('\n')], ['seq', String(seq)]);
    if (beside !== undefined) {
      fields.push(['gave2', beside.gave.join('\n')], ['lost2', beside.lost.join('\n')]);
      fields.push(['seq2', String(beside.seq)]);
    }
    if (leaseMs !== undefined) fields.push(['lease', String(leaseMs)]);
    if (pause !== undefined) fields.push(['pause', pause]);
    fields.sort(byFirst);
    return { hash: fields, until: roundUp(this.limits.recordMs) };
  }

  /** Takes over what is there: after keys were deleted by hand and what is broken was mended. */
  load(state: State): void {
    const hash = (name: string) =>
      new Map((state[name] as { hash?: [string, string][] } | undefined)?.hash ?? []);
    const numbers = (name: string) => new Map([...hash(name)].map(([k, v]) => [k, Number(v)]));
    const zset = (name: string) =>
      new Map(
        (state[name] as { zset?: [string, string][] } | undefined)?.zset?.map(([k, v]) => [k, Number(v)]) ??
          [],
      );
    const list = (name: string) => [...((state[name] as { list?: string[] } | undefined)?.list ?? [])];
    for (const name of ['jobs', 'failures', 'results', 'progress', 'logs', 'toCancel', 'cancelled'] as const)
      this[name] = hash(name);
    for (const name of ['attempts', 'stalls', 'priorities'] as const) this[name] = numbers(name);
    for (const name of ['prioritized', 'delayed', 'dead', 'completed'] as const) this[name] = zset(name);
    this.wait = list('wait');
    this.suspects = list('suspects');
    this.leases = zset('workers');
    this.bells.clear();
    for (const bell of zset('doorbell').keys()) this.bells.add(bell);
    this.tallies = numbers('stats');
    const meta = numbers('meta');
    this.ranks = meta.get('ranks') ?? 0;
    this.lastEvent = meta.get('events') ?? 0;
    this.pausedAt = meta.get('paused') ?? null;
    this.said = [];
    this.active = new Map();
    const before = this.records;
    this.records = new Map();
    for (const key of Object.keys(state)) {
      const name = key.slice(key.indexOf(':') + 1);
      if (key.startsWith('active:')) this.active.set(name, new Set((state[key] as { set: string[] }).set));
      if (key.startsWith('worker:'))
        this.records.set(
          name,
          readRecord(hash(key), before.get(name)?.until ?? this.now + this.limits.recordMs),
        );
    }
  }
}

function readRecord(fields: Map<string, string>, until: number): WorkerRecord {
  const ids = (name: string) => (fields.get(name) ?? '').split('\n').filter(Boolean);
  const doubt = fields.get('doubt');
  return {
    until,
    ...(doubt === undefined ? {} : { doubt }),
    ...(fields.has('pause') ? { pause: fields.get('pause')! } : {}),
    ...(fields.has('lease') ? { leaseMs: Number(fields.get('lease')) } : {}),
    ...(fields.has('seq') ? { seq: Number(fields.get('seq')), gave: ids('gave'), lost: ids('lost') } : {}),
    ...(fields.has('seq2')
      ? { beside: { seq: Number(fields.get('seq2')), gave: ids('gave2'), lost: ids('lost2') } }
      : {}),
  };
}

/** As a sorted set has them: by score, then by member. */
export function sorted(zset: ReadonlyMap<string, number>): [string, number][] {
  return [...zset].toSorted((a, b) => a[1] - b[1] || byFirst(a, b));
}

export function claimOf(model: QueueModel, id: string): ClaimedJob {
  const body = model.jobs.get(id) ?? '';
  const failed = model.attempts.get(id);
  const claim = { id, body, failed: failed ?? 0, stalls: model.stalls.get(id) ?? 0 };
  return failed === 0 ? { ...claim, started: true } : claim;
}
