import type { AgingRule } from '../job/limit-rule.js';
import {
  type BreakerRule,
  type GroupCounts,
  type LimitCharge,
  type LimitField,
  type LimitRule,
  type LimitState,
  type RunReport,
  type RunReportAnswer,
} from '../contract/limit-verbs.js';
import { decodeBody } from '../job/job-record.js';
import { RULES } from '../job/rules.js';
import { byBytes, Ranking } from './lines.js';
import type { MemoryJob, MemoryLine, Priority } from './memory-job.js';
import { BreakerBook, stateOfBreaker } from './breakers.js';
import type { Saying } from './event-log.js';
import { ShareBook } from './shares.js';
import { mostRunning, rateCharged, roomOf, UNUSED, type LimitUse, type Room } from './rates.js';

/** The parts of its queue that a book of limits needs. */
interface Surroundings {
  readonly now: number;
  readonly delayed: { readonly size: number };
  leased(): readonly { readonly held: ReadonlyMap<string, MemoryJob> }[];
  ring(): void;
}

/** A job that counts against a concurrency limit. */
export interface Slot {
  readonly line: MemoryLine | null;
  /**
   * `strict`: in a line with strict order the job keeps its slot while it waits for a retry. `block`: it also keeps it when it is
   * dead. `counted`: groups are served by their running jobs, so the line gets a new place when the job ends.
   */
  readonly keep: '' | 'counted' | 'strict' | 'block';
  /** The job is dead. It stops its line while groups have onDead 'block', but it does not run, so it counts for nothing else. */
  readonly isDead?: boolean;
}

/** A job that goes to the end of a line, or to the front of its priority. */
export interface LineEntry {
  readonly job: MemoryJob;
  readonly name: string;
  readonly priority: number;
  readonly isFirst?: boolean;
}

/** The limits of a queue, how much of them is used, and its lines and slots. */
export class LimitBook {
  /** Letters for the kinds of limits, as in `meta.limited` on Redis. Empty: no limits. */
  flags = '';
  /** Until when the letter `b` counts, in ms. */
  private heldUntil = Infinity;
  readonly grouped = new Ranking('grouped');
  private readonly rules = new Map<LimitField, { code?: LimitRule; live?: LimitRule }>();
  private readonly uses = new Map<LimitField, LimitUse>();
  private readonly lines = new Map<string, MemoryLine>();
  readonly slots = new Map<MemoryJob, Slot>();
  /** In the queue without a name: which workers have places of shared limits. */
  readonly shares = new ShareBook(this);
  private readonly breakers = new BreakerBook();
  private made = 0;
  private turn = 0;

  constructor(private readonly queue: Surroundings) {}

  get isOn(): boolean {
    return this.flags !== '';
  }

  /** Whether jobs must start when they are claimed, as in `open_gate` of the scripts. */
  get startsAtOnce(): boolean {
    return /[rs]/.test(this.flags) || this.hasBlocks;
  }

  /** Whether a hold or a breaker may keep jobs of some line from starting. */
  get hasBlocks(): boolean {
    return this.flags.includes('b') && this.queue.now < this.heldUntil;
  }

  /** Whether jobs wait in lines: because of groups, limits of names, or aging. */
  get hasLines(): boolean {
    return /[agn]/.test(this.flags);
  }

  get hasAging(): boolean {
    return this.flags.includes('a');
  }

  /** Whether a job with `lifo` goes to the front of its line. */
  get hasFronts(): boolean {
    return /[gn]/.test(this.flags) && !this.hasAging;
  }

  /** Becomes smaller if other jobs may start: a slot is freed, or its job is dead. */
  get slotsInUse(): number {
    return this.slots.size + this.slotCount;
  }

  /** How many jobs hold a slot and are not dead. */
  get slotCount(): number {
    let count = 0;
    for (const { isDead } of this.slots.values()) if (!isDead) count += 1;
    return count;
  }

  /** Deletes everything except the limits in the code: the running processes have written them when they started. */
  clear(): void {
    const code = [...this.rules].flatMap(([field, { code: its }]) =>
      its ? [[field, { code: its }] as const] : [],
    );
    if (code.length === 0) this.flags = '';
    this.made = 0;
    this.turn = 0;
    this.grouped.clear();
    this.breakers.clear();
    for (const map of [this.rules, this.uses, this.lines, this.slots]) map.clear();
    for (const [field, rule] of code) this.rules.set(field, rule);
  }

  // -------------------------------------------------------------------------------------------------------------- rules

  private rule(field: LimitField, base: LimitRule = {}): LimitRule {
    const { code, live } = this.rules.get(field) ?? {};
    return { ...base, ...code, ...live };
  }

  /** Whether groups are served by their running jobs. Then the jobs without a group count as one group. */
  get isByRunning(): boolean {
    return this.rule('g').fairness === 'in-flight';
  }

  private ruleWithDefaults(field: LimitField): LimitRule {
    return this.rule(field, field.startsWith('g:') ? this.rule('g') : {});
  }

  private ruleOf(name: string): LimitRule {
    if (name.startsWith('g:')) return this.rule(name, this.rule('g'));
    const others: LimitRule = this.isByRunning ? { fairness: 'in-flight' } : {};
    return name === '' ? others : this.rule(name, others);
  }

  private use(field: LimitField): LimitUse {
    return this.uses.get(field) ?? UNUSED;
  }

  flag(flags: string, heldUntil = Infinity): void {
    if (flags.includes('b')) {
      const before = this.flags.includes('b') ? this.heldUntil : 0;
      this.heldUntil = Math.ceil(Math.max(heldUntil, before));
    }
    for (const flag of flags) if (!this.flags.includes(flag)) this.flags += flag;
  }

  set(field: LimitField, part: 'code' | 'live', given: LimitRule | null): void {
    const { queue } = this;
    const parts = { ...this.rules.get(field) };
    const before = JSON.stringify(parts[part] ?? {});
    const flagsBefore = flagsOf(field, this.rule(field));
    const mostBefore = mostRunning(this.ruleWithDefaults(field));
    const rule = given && part === 'live' ? changed(parts.live, given) : given;
    delete parts[part];
    if (rule) parts[part] = rule;
    if (parts.code || parts.live) {
      this.rules.set(field, parts);
    } else if (field.startsWith('n:') && this.lines.has(field)) this.rules.set(field, {});
    else this.rules.delete(field);
    const flags = flagsOf(field, this.rule(field));
    this.flag(flags);
    const isLost = (flag: string) => flagsBefore.includes(flag) && !flags.includes(flag);
    if ((isLost('r') || isLost('s')) && this.rules.size <= RULES.rulesRead) {
      const needed = [...this.rules.keys()].map((one) => flagsOf(one, this.rule(one))).join('');
      this.flags = this.flags.replaceAll(/[rs]/g, (flag) => (needed.includes(flag) ? flag : ''));
    }
    // Also without a change: on Redis this is a call of its own, and a repetition of `set` replaces a lost one.
    if (field === 'g') this.wakeLines();
    if (before === JSON.stringify(rule ?? {})) return;
    const applies = this.ruleWithDefaults(field);
    const isNew = mostBefore === Infinity || (rule !== null && mostRunning(rule) < Infinity);
    if (isNew && mostRunning(applies) < Infinity) {
      for (const worker of queue.leased())
        for (const job of [...worker.held.values()].toSorted((a, b) => byBytes(a.id, b.id)))
          this.adopt(job, field, applies);
    }
    const line = this.lines.get(field);
    if (line) this.wake(line, true);
    queue.ring();
  }

  /** Counts a running job against a new concurrency limit. */
  private adopt(job: MemoryJob, field: LimitField, rule: LimitRule): void {
    const slot = this.slots.get(job);
    if (field === 'q') {
      if (!slot) this.slots.set(job, { line: null, keep: '' });
      return;
    }
    const group = groupOf(job);
    const own = field.startsWith('g') ? group !== undefined && `g:${group}` : `n:${job.name}`;
    if (!own || (field !== 'g' && field !== own) || slot?.line) return;
    this.slots.set(job, { line: this.lineNamed(own), keep: keepOf(rule) });
  }

  /** Makes the next claim examine all lines. */
  wakeLines(): void {
    for (const line of this.lines.values()) this.wake(line);
    if (this.lines.size > 0) this.queue.ring();
  }

  private wake(line: MemoryLine, isFirst = false): void {
    line.restsUntil = null;
    if (isFirst || line.ready === null) line.ready = 0;
  }

  charge(changes: readonly LimitCharge[]): void {
    const { now } = this.queue;
    for (const { field, holdMs, count, countedAt, probesAgain = false } of changes) {
      const rule = field.startsWith('g:') ? this.rule(field, this.rule('g')) : this.rule(field);
      const before = this.use(field);
      let { blocked, rate, mark, till } = before;
      const hasProbe = probesAgain && mark === '?';
      if (hasProbe) till = now;
      if (holdMs > 0) {
        blocked = Math.max(blocked, now + holdMs);
        this.flag(field.startsWith('n:') ? 'bn' : field.startsWith('g:') ? 'bg' : 'b', blocked);
        if (field.startsWith('n:') && !this.rules.has(field)) this.rules.set(field, {});
      } else if (holdMs < 0) {
        blocked = 0;
        mark = '';
      }
      if (rule.rate && count !== 0) rate = rateCharged(rule.rate, rate, now, count, countedAt);
      const hasState = this.uses.has(field);
      const counts = hasProbe || (rule.rate && (hasState || count > 0));
      if (!(holdMs > 0 || (holdMs === 0 ? counts : hasState))) continue;
      const after = { blocked, rate, mark, till };
      this.uses.set(field, after);
      const line = /^[gn]:/.test(field) ? this.lineNamed(field) : null;
      const [old, room] = [before, after].map((use) => roomOf(rule, use, now)) as [Room, Room];
      // The next job may cost more than was left.
      const hasOpened = room.left >= 1 && (old.left < 1 || room.costLeft > old.costLeft);
      if (!(holdMs < 0 || hasOpened)) continue;
      if (line) this.wake(line, true);
      this.queue.ring();
    }
  }

  /** Like `report.lua`. Returns the answers and the events. */
  report(reports: readonly RunReport[]): { answers: RunReportAnswer[]; says: Saying[] } {
    const { now } = this.queue;
    const says: Saying[] = [];
    const answers = reports.map((report): RunReportAnswer => {
      const { field, retries, firsts } = report;
      const { breaker, retryBudget } = this.rule(field);
      const change = breaker ? this.breakers.report(report, breaker, this.use(field), now) : null;
      if (change) {
        this.uses.set(field, change.use);
        const line = field.startsWith('n:') ? this.lineNamed(field) : null;
        if (line) this.flag('bn');
        const [name, reason] = field.startsWith('s:') ? ['', field.slice(2)] : [field.slice(2), ''];
        if (change.kind === 'opened')
          says.push({
            type: 'breakerOpened',
            id: '',
            name,
            reason,
            delayMs: (breaker as BreakerRule).openFor,
          });
        if (change.kind === 'closed') {
          says.push({ type: 'breakerClosed', id: '', name, reason });
          if (line) this.wake(line, true);
          this.queue.ring();
        }
      }
      const places =
        retryBudget && (retries !== 0 || firsts > 0)
          ? this.breakers.places(report, retryBudget, now)
          : { firstMs: 0, eachMs: 0 };
      return { breaker: change?.kind ?? '', ...places };
    });
    return { answers, says };
  }

  list(): LimitState[] {
    const names = [...this.rules.keys()].filter((field) => field.startsWith('n:'));
    return ['q', ...(this.rules.has('g') ? ['g'] : []), ...names].map((field) => this.stateOf(field));
  }

  /** Limits that queues share; this is the book of the queue without a name. */
  shared(): LimitState[] {
    return [...this.rules.keys()]
      .filter((field) => field.startsWith('s:'))
      .map((field) => ({
        ...this.stateOf(field),
        running: this.shares.running(field.slice(2), this.queue.now),
        users: this.shares.users(field.slice(2), this.queue.now),
      }));
  }

  /** The states of groups that have a line. */
  groups(): LimitState[] {
    return [...this.lines.keys()].filter((name) => name.startsWith('g:')).map((name) => this.stateOf(name));
  }

  /** The states of groups that a dead job stops. */
  stoppedGroups(): LimitState[] {
    return this.groups().filter(({ isStopped }) => isStopped);
  }

  /** The states of groups that have a rule of their own. */
  ruledGroups(): LimitState[] {
    return [...this.rules.keys()]
      .filter((field) => field.startsWith('g:'))
      .map((field) => this.stateOf(field));
  }

  groupCounts(): GroupCounts {
    const groups = [...this.lines.values()].filter(({ name }) => name.startsWith('g:'));
    return {
      ready: groups.filter(({ ready }) => ready !== null).length,
      resting: groups.filter(({ restsUntil }) => restsUntil !== null).length,
      stopped:
        this.rule('g').onDead === 'block'
          ? [...this.slots.values()].filter(({ isDead }) => isDead).length
          : 0,
    };
  }

  stateOf(field: LimitField): LimitState {
    const { code = null, live = null } = this.rules.get(field) ?? {};
    const rule = field.startsWith('g:') ? this.ruleOf(field) : this.rule(field);
    const use = this.use(field);
    const { left, nextMs } = roomOf(rule, use, this.queue.now);
    const line = this.lines.get(field);
    const running = line ? this.runningOf(line) : field === 'q' ? this.slotCount : 0;
    const stopped = line && running === 0 ? this.stoppedOf(line) : 0;
    const hasHolder = stopped > 0 || rule.order === 'strict';
    const holder = line && hasHolder ? this.holderIn(line, stopped > 0) : null;
    return {
      field,
      code,
      live,
      rule,
      blockedForMs: Math.max(0, Math.ceil(use.blocked - this.queue.now)),
      left: rule.rate ? left : null,
      nextInMs: left < 1 ? Math.ceil(nextMs) : 0,
      waiting: line ? sizeOf(line) : 0,
      running,
      breaker: rule.breaker ? stateOfBreaker(rule.breaker, use, this.queue.now) : null,
      retryDelayMs: rule.retryBudget ? this.breakers.delayOf(field, rule.retryBudget, this.queue.now) : 0,
      holder: holder?.id ?? null,
      isStopped: stopped > 0,
      users: [],
    };
  }

  // -------------------------------------------------------------------------------------------------------------- lines

  /** The group that these jobs would make too large; null if there is none. */
  fullGroup(groups: readonly string[]): { group: string; size: number; maxSize: number } | null {
    for (const group of new Set(groups)) {
      const { maxSize } = this.ruleOf(`g:${group}`);
      const line = this.lines.get(`g:${group}`);
      const size = line ? sizeOf(line) : 0;
      if (maxSize && size + groups.filter((one) => one === group).length > maxSize)
        return { group, size, maxSize };
    }
    return null;
  }

  /**
   * Adds jobs to the end of their lines, or to the front if `isFirst`. New lines are created first, as on Redis, so that they get the
   * same numbers.
   */
  toLines(entries: readonly LineEntry[], rankOf: () => number): void {
    for (const { name } of entries) this.lineNamed(name);
    for (const { job, name, priority } of entries) {
      const line = this.lineNamed(name);
      let place = line.jobs.get(priority);
      if (!place) line.jobs.set(priority, (place = { number: this.freeNumber(), jobs: new Set() }));
      place.jobs.add(job);
      job.line = line;
      this.grouped.add(job, place.number * RULES.ranks + rankOf());
      line.ready ??= 0;
    }
    for (const { job, priority, isFirst } of entries.toReversed())
      if (isFirst) this.toFront(job, job.line!.jobs.get(priority)!);
  }

  /** Moves a job to the front of the jobs of its line that have its priority. */
  private toFront(job: MemoryJob, place: Priority): void {
    const [first] = place.jobs;
    const score = Math.max(place.number * RULES.ranks, first!.score - 1);
    this.grouped.remove(job);
    this.grouped.add(job, score);
    const others = [...place.jobs];
    place.jobs.clear();
    for (const one of [job, ...others]) place.jobs.add(one);
  }

  /** The first job of each priority of the first lines that may give one. */
  heads(most: number): MemoryJob[] {
    const lines = this.ready().slice(0, most);
    return lines.flatMap(({ jobs }) => [...jobs.values()].flatMap(({ jobs: [first] }) => first ?? []));
  }

  /** The lines that may give a job, by turn. */
  ready(): MemoryLine[] {
    return [...this.lines.values()]
      .filter(({ ready }) => ready !== null)
      .toSorted((a, b) => a.ready! - b.ready! || a.number - b.number);
  }

  /** Makes this job the first that the next claim takes. */
  bringForward(job: MemoryJob): void {
    const { line } = job;
    this.leave(job);
    const [, first] = [...line!.jobs].toSorted(([a], [b]) => a - b)[0]!;
    const others = [...first.jobs];
    first.jobs.clear();
    for (const one of [job, ...others]) first.jobs.add(one);
    job.line = line;
    this.grouped.add(job, first.number * RULES.ranks);
    line!.ready = -1;
    line!.turn = -1;
  }

  /** Takes a waiting job out of its line. */
  leave(job: MemoryJob): void {
    this.grouped.remove(job);
    for (const { jobs } of job.line!.jobs.values()) jobs.delete(job);
    job.line = null;
  }

  private lineNamed(name: string): MemoryLine {
    let line = this.lines.get(name);
    if (!line) {
      const { turn } = this;
      const number = this.freeNumber();
      const jobs = new Map([[0, { number, jobs: new Set<MemoryJob>() }]]);
      line = { name, number, turn, jobs, ready: Math.max(turn, 1), restsUntil: null };
      this.lines.set(name, line);
    }
    return line;
  }

  private freeNumber(): number {
    this.made += 1;
    return (this.made % RULES.linesMax) + 1;
  }

  private lineNameOf(job: MemoryJob): string {
    const group = groupOf(job);
    if (group !== undefined) return `g:${group}`;
    const name = `n:${job.name}`;
    return this.flags.includes('n') && this.rules.has(name) ? name : '';
  }

  /** A job that holds the slot of a line, running or dead. Of several that started before strict order was set, the first by id, as on Redis. */
  private holderIn(line: MemoryLine, dead: boolean): MemoryJob | null {
    const its = [...this.slots]
      .filter(([, slot]) => slot.line === line && (slot.isDead ?? false) === dead)
      .toSorted(([a], [b]) => byBytes(a.id, b.id));
    return its[0]?.[0] ?? null;
  }

  private runningOf(line: MemoryLine): number {
    return this.countSlots(line, false);
  }

  /** How many dead jobs stop a line. Only the rule of all groups lets them, as on Redis. */
  private stoppedOf(line: MemoryLine): number {
    return this.rule('g').onDead === 'block' ? this.countSlots(line, true) : 0;
  }

  private countSlots(line: MemoryLine, dead: boolean): number {
    let count = 0;
    for (const slot of this.slots.values())
      if (slot.line === line && (slot.isDead ?? false) === dead) count += 1;
    return count;
  }

  /** Frees the slot of a job that leaves its worker: to run again (`moved`), dead, or gone. */
  release(job: MemoryJob, how: 'moved' | 'dead' | 'gone'): void {
    const slot = this.slots.get(job);
    if (!slot) return;
    const { line, keep } = slot;
    const isStrict = keep === 'strict' || keep === 'block';
    if (how === 'moved' && isStrict) return;
    if (how === 'dead' && keep === 'block') {
      this.slots.set(job, { ...slot, isDead: true });
    } else this.slots.delete(job);
    if (line && keep === 'counted') line.ready = 0;
    else if (line) line.ready ??= 0;
  }

  // -------------------------------------------------------------------------------------------------------------- claim

  /** The parts of this class that a claim uses. */
  readonly inside = {
    has: (field: LimitField) => this.rules.has(field),
    rule: (field: LimitField) => this.rule(field),
    ruleOf: (name: string) => this.ruleOf(name),
    use: (field: LimitField) => this.use(field),
    setUse: (field: LimitField, use: LimitUse) => void this.uses.set(field, use),
    slots: this.slots,
    lines: this.lines,
    /** Deletes a line that is empty and whose state is no longer needed. */
    dropLine: (name: string) => {
      this.lines.delete(name);
      this.uses.delete(name);
      if (Object.keys(this.rules.get(name) ?? { code: 1 }).length === 0) this.rules.delete(name);
    },
    lineNamed: (name: string) => this.lineNamed(name),
    lineNameOf: (job: MemoryJob) => this.lineNameOf(job),
    runningOf: (line: MemoryLine) => this.runningOf(line),
    stoppedOf: (line: MemoryLine) => this.stoppedOf(line),
    slotCount: () => this.slotCount,
    hasSlots: (line: MemoryLine) => [...this.slots.values()].some((slot) => slot.line === line),
    turn: () => this.turn,
    advanceTurn: (turn: number) => void (this.turn = Math.max(this.turn, turn)),
    turnOff: () => {
      const kept = this.rules.size + this.lines.size + this.slots.size + this.grouped.size;
      const isEmpty = kept + (this.flags.includes('g') ? this.queue.delayed.size : 0) === 0;
      if (!isEmpty) return;
      this.uses.clear();
      this.breakers.clear();
      this.flags = '';
    },
  };
}

/** The values set at run time, after a change. A group that is not paused needs no entry. */
function changed(live: LimitRule | undefined, change: LimitRule): LimitRule | null {
  const { paused, ...rest } = { ...live, ...change };
  const rule = paused ? { ...rest, paused } : rest;
  return Object.keys(rule).length > 0 ? rule : null;
}

/** The letters of a rule, as in `flags_of` of the scripts. */
function flagsOf(field: LimitField, rule: LimitRule): string {
  const kind = field.startsWith('g:') ? 'go' : field === 'g' || field === 'q' ? field : 'n';
  if (Object.keys(rule).every((name) => name === 'retryBudget')) return '';
  const isLimited = rule.concurrency && !field.startsWith('g');
  const isAtOnce = rule.breaker || rule.paused || rule.fairness === 'in-flight' || isLimited;
  return `${kind}${rule.rate ? 'r' : ''}${isAtOnce ? 's' : ''}${rule.aging ? 'a' : ''}`;
}

export function sizeOf({ jobs }: MemoryLine): number {
  let size = 0;
  for (const { jobs: some } of jobs.values()) size += some.size;
  return size;
}

export function inOrder({ jobs }: MemoryLine): MemoryJob[] {
  return [...jobs].toSorted(([a], [b]) => a - b).flatMap(([, { jobs: some }]) => [...some]);
}

/**
 * The first `count` jobs in the order of `aging`. Only the first job of each priority can be next. The next job is the one whose wait
 * began first, but a job with priority `p` counts as if its wait had begun `p * every / by` later.
 */
export function agedOrder(
  { jobs }: MemoryLine,
  { every, by }: AgingRule,
  count: number,
  now: number,
): MemoryJob[] {
  const placeOf = (job: MemoryJob | undefined, lead: number) => {
    if (!job) return Infinity;
    const read = decodeBody(job.body);
    const { runnableAt = Infinity } = read?.options ?? {};
    // A job whose time has not come was promoted.
    return (runnableAt <= now ? runnableAt : (read?.createdAt ?? 0)) + lead;
  };
  const heads = [...jobs]
    .toSorted(([a], [b]) => a - b)
    .map(([priority, { jobs: some }]) => {
      const left = [...some];
      const lead = (priority * every) / by;
      return { left, lead, at: 0, place: placeOf(left[0], lead) };
    });
  const ordered: MemoryJob[] = [];
  while (heads.length > 0 && ordered.length < count) {
    const first = heads.reduce((a, b) => (b.place < a.place ? b : a));
    if (first.place === Infinity) break;
    ordered.push(first.left[first.at++]!);
    first.place = placeOf(first.left[first.at], first.lead);
  }
  return ordered;
}

export function keepOf({ order, onDead, fairness }: LimitRule): Slot['keep'] {
  if (order !== 'strict') return fairness === 'in-flight' ? 'counted' : '';
  return onDead === 'block' ? 'block' : 'strict';
}

function groupOf({ body }: MemoryJob): string | undefined {
  return decodeBody(body)?.options.group;
}
