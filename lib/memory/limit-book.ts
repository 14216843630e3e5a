import {
  flagsOf,
  type LimitCharge,
  type LimitField,
  type LimitRule,
  type LimitState,
  type LimitVerbs,
} from '../contract/limit-verbs.js';
import type { ExchangeCall, QueueLimits, Supply } from '../contract/engine.js';
import { decodeBody } from '../job/job-record.js';
import { RULES } from '../job/rules.js';
import { activated, type Claimed } from './exchange.js';
import { byBytes, Ranking } from './lines.js';
import type { MemoryJob } from './memory-job.js';
import type { MemoryQueue } from './memory-queue.js';
import type { MemoryWorker } from './memory-worker.js';
import type { Verbs } from './verbs.js';
import { mostRunning, rateCharged, roomOf, UNUSED, useOverAt, type LimitUse } from './rates.js';

/** Groups, and names with limits, have lines; all other jobs of a queue with lines share the line without a name. */
export interface MemoryLine {
  readonly name: string;
  readonly number: number;
  turn: number;
  /** By priority, in the order in which they came; 0 first of all. */
  readonly jobs: Map<number, Priority>;
  /** Its turn, 0 if it must be looked at first; null: it may give nothing now. */
  ready: number | null;
  /** It may give jobs again then. */
  restsUntil: number | null;
}

/** The jobs of one priority in a line, which have a number of their own. */
interface Priority {
  readonly number: number;
  readonly jobs: Set<MemoryJob>;
}

/** A job counts against a concurrency. */
export interface Slot {
  readonly line: MemoryLine | null;
  /** Of a line in strict order: a job that waits for its retry keeps it, and with `block` also one that is dead. */
  readonly keep: '' | 'strict' | 'block';
}

/** What is known of a line during a claim. */
interface Candidate {
  readonly line: MemoryLine;
  readonly rule: LimitRule;
  readonly most: number;
  readonly step: number;
  readonly running: number;
  /** It had fewer jobs than were asked of it. */
  isEmpty: boolean;
  tokens: number;
  nextMs: number;
  room: number;
  turn: number;
  began: number;
  got: number;
  count: number;
  used: number;
}

interface Choice {
  readonly job: MemoryJob;
  readonly of: Candidate | null;
}

/** The limits of a queue and what is used of them, its lines and slots. */
export class LimitBook {
  /** Which limits there are, as `meta.limited` on Redis; empty: none. */
  flags = '';
  readonly grouped = new Ranking('grouped');
  private readonly rules = new Map<LimitField, { code?: LimitRule; live?: LimitRule }>();
  private readonly uses = new Map<LimitField, LimitUse>();
  private readonly lines = new Map<string, MemoryLine>();
  private readonly slots = new Map<MemoryJob, Slot>();
  private made = 0;
  private turn = 0;

  constructor(private readonly queue: MemoryQueue) {}

  get isOn(): boolean {
    return this.flags !== '';
  }

  get hasSlots(): boolean {
    return this.slots.size > 0;
  }

  clear(): void {
    this.flags = '';
    this.made = 0;
    this.turn = 0;
    this.grouped.clear();
    for (const map of [this.rules, this.uses, this.lines, this.slots]) map.clear();
  }

  // -------------------------------------------------------------------------------------------------------------- rules

  private rule(field: LimitField, base: LimitRule = {}): LimitRule {
    const { code, live } = this.rules.get(field) ?? {};
    return { ...base, ...code, ...live };
  }

  private ruleOf(name: string): LimitRule {
    if (name.startsWith('g:')) return this.rule(name, this.rule('g'));
    return name === '' ? {} : this.rule(name);
  }

  private use(field: LimitField): LimitUse {
    return this.uses.get(field) ?? UNUSED;
  }

  flag(flags: string): void {
    for (const flag of flags) if (!this.flags.includes(flag)) this.flags += flag;
  }

  set(field: LimitField, part: 'code' | 'live', rule: LimitRule | null): void {
    const { queue } = this;
    const parts = { ...this.rules.get(field) };
    const before = JSON.stringify(parts[part] ?? {});
    delete parts[part];
    if (rule) parts[part] = rule;
    if (parts.code || parts.live) {
      this.rules.set(field, parts);
      this.flag(rule ? flagsOf(field, rule) : '');
    } else this.rules.delete(field);
    if (before === JSON.stringify(rule ?? {})) return;
    if (rule && mostRunning(rule) < Infinity) {
      for (const worker of queue.leased())
        for (const job of [...worker.held.values()].toSorted((a, b) => byBytes(a.id, b.id)))
          this.adopt(job, field, rule);
    }
    const line = this.lines.get(field);
    if (line) this.wake(line, true);
    if (field === 'g') for (const each of this.lines.values()) this.wake(each);
    queue.ring();
  }

  /** A running job counts against a new concurrency. */
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

  private wake(line: MemoryLine, isFirst = false): void {
    line.restsUntil = null;
    if (isFirst || line.ready === null) line.ready = 0;
  }

  charge(changes: readonly LimitCharge[]): void {
    const { now } = this.queue;
    for (const { field, holdMs, count } of changes) {
      const rule = field.startsWith('g:') ? this.rule(field, this.rule('g')) : this.rule(field);
      let { blocked, rate } = this.use(field);
      if (holdMs > 0) {
        blocked = Math.max(blocked, now + holdMs);
        this.flag(field.startsWith('n:') ? 'bn' : field.startsWith('g:') ? 'bg' : 'b');
        if (field.startsWith('n:') && !this.rules.has(field)) this.rules.set(field, {});
      }
      if (rule.rate && count !== 0) rate = rateCharged(rule.rate, rate, now, count);
      if (holdMs > 0 || rule.rate) this.uses.set(field, { blocked, rate });
    }
  }

  list(): LimitState[] {
    const names = [...this.rules.keys()].filter((field) => field.startsWith('n:'));
    return ['q', ...(this.rules.has('g') ? ['g'] : []), ...names].map((field) => this.stateOf(field));
  }

  /** Of groups that have a line. */
  groups(): LimitState[] {
    return [...this.lines.keys()].filter((name) => name.startsWith('g:')).map((name) => this.stateOf(name));
  }

  stateOf(field: LimitField): LimitState {
    const { code = null, live = null } = this.rules.get(field) ?? {};
    const rule = field.startsWith('g:') ? this.ruleOf(field) : this.rule(field);
    const use = this.use(field);
    const { left, nextMs } = roomOf(rule, use, this.queue.now);
    const line = this.lines.get(field);
    return {
      field,
      code,
      live,
      rule,
      blockedForMs: Math.max(0, Math.ceil(use.blocked - this.queue.now)),
      left: rule.rate ? left : null,
      nextInMs: left < 1 ? Math.ceil(nextMs) : 0,
      waiting: line ? sizeOf(line) : 0,
      running: line ? this.runningOf(line) : field === 'q' ? this.slots.size : 0,
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

  /** To the end of their lines: new lines first, as on Redis, so that they have the same numbers. */
  toLines(
    entries: readonly { job: MemoryJob; name: string; priority: number }[],
    rankOf: () => number,
  ): void {
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
  }

  /** The first job of each priority of the first lines that may give one. */
  heads(most: number): MemoryJob[] {
    const lines = this.ready().slice(0, most);
    return lines.flatMap(({ jobs }) => [...jobs.values()].flatMap(({ jobs: [first] }) => first ?? []));
  }

  /** Lines that may give a job, by their turns. */
  ready(): MemoryLine[] {
    return [...this.lines.values()]
      .filter(({ ready }) => ready !== null)
      .toSorted((a, b) => a.ready! - b.ready! || a.number - b.number);
  }

  /** The next claim takes this job first. */
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
    return this.rules.has(`n:${job.name}`) ? `n:${job.name}` : '';
  }

  private runningOf(line: MemoryLine): number {
    let running = 0;
    for (const slot of this.slots.values()) if (slot.line === line) running += 1;
    return running;
  }

  /** A job leaves its worker: to run again (`moved`), dead, or gone. */
  release(job: MemoryJob, how: 'moved' | 'dead' | 'gone'): void {
    const slot = this.slots.get(job);
    if (!slot) return;
    const { line, keep } = slot;
    if (how === 'moved' && keep !== '') return;
    if (how === 'dead' && keep === 'block') return;
    this.slots.delete(job);
    if (line) line.ready ??= 0;
  }

  // -------------------------------------------------------------------------------------------------------------- claim

  claim(worker: MemoryWorker, call: ExchangeCall, limits: QueueLimits): Claimed & { supply: Supply } {
    return new LimitedClaim(this, this.queue, worker, call, limits).run();
  }

  /** What a claim needs of all this. */
  readonly inside = {
    rule: (field: LimitField, base?: LimitRule) => this.rule(field, base),
    ruleOf: (name: string) => this.ruleOf(name),
    use: (field: LimitField) => this.use(field),
    setUse: (field: LimitField, use: LimitUse | null) =>
      void (use ? this.uses.set(field, use) : this.uses.delete(field)),
    slots: this.slots,
    lines: this.lines,
    lineNamed: (name: string) => this.lineNamed(name),
    lineNameOf: (job: MemoryJob) => this.lineNameOf(job),
    runningOf: (line: MemoryLine) => this.runningOf(line),
    turn: () => this.turn,
    advanceTurn: (turn: number) => void (this.turn = Math.max(this.turn, turn)),
    turnOff: () => {
      const kept = this.rules.size + this.lines.size + this.slots.size + this.grouped.size;
      const isEmpty = kept + this.queue.delayed.size === 0;
      if (!isEmpty) return;
      this.uses.clear();
      this.flags = '';
    },
  };
}

/** The claim of a queue with limits or groups, as `claim-limited.lua`: it chooses, and then moves. */
class LimitedClaim {
  private readonly now: number;
  private readonly in: LimitBook['inside'];
  private readonly choices: Choice[] = [];
  private readonly candidates = new Map<MemoryLine, Candidate>();

  constructor(
    private readonly book: LimitBook,
    private readonly queue: MemoryQueue,
    private readonly worker: MemoryWorker,
    private readonly call: ExchangeCall,
    private readonly limits: QueueLimits,
  ) {
    this.now = queue.now;
    this.in = book.inside;
  }

  run(): Claimed & { supply: Supply } {
    const { queue, book, now } = this;
    const { maxBytes = Infinity, maySuspect } = this.call;
    const want = Math.min(this.call.want, RULES.claimMax);
    if (queue.pausedAt !== null) return { claimed: [], isCut: false, supply: 'paused' };
    const hasLines = /[gn]/.test(book.flags);
    const rule = this.in.rule('q');
    let { left: tokens, nextMs } = roomOf(rule, this.in.use('q'), now);
    let free = Math.max(0, mostRunning(rule) - (rule.concurrency ? this.in.slots.size : 0));

    const own = hasLines ? this.sortArrivals() : [];
    const suspect = maySuspect && tokens >= 1 ? queue.suspects.first : null;
    if (suspect) {
      if (this.in.slots.has(suspect)) this.choices.push({ job: suspect, of: null });
      else if (free >= 1) {
        const of = hasLines ? this.load(this.in.lineNamed(this.in.lineNameOf(suspect))) : null;
        if (!of || of.room >= 1) {
          this.choices.push({ job: suspect, of });
          if (of) of.room -= 1;
          free -= 1;
        }
      }
    }
    const chosen = () => this.choices.length;
    if (hasLines) {
      const most = Math.min(want - chosen(), tokens - chosen());
      for (const job of own.slice(0, Math.max(0, most))) this.choices.push({ job, of: null });
      this.chooseOfLines(Math.min(want - chosen(), tokens - chosen(), free));
    } else {
      let most = Math.min(want - chosen(), tokens - chosen(), free);
      for (const line of [queue.wait, queue.prioritized.sorted()]) {
        for (const job of line) {
          if (most < 1) break;
          this.choices.push({ job, of: null });
          most -= 1;
        }
      }
    }

    const claimed: MemoryJob[] = [];
    let used = 0;
    let bytes = 0;
    let isCut = false;
    const hasRate = tokens < Infinity || /[rb]/.test(book.flags);
    const started: Choice[] = [];
    for (const choice of this.choices) {
      const { job, of } = choice;
      bytes += Buffer.byteLength(job.body);
      if (bytes > maxBytes && choice !== this.choices[0]) {
        isCut = true;
        break;
      }
      started.push(choice);
      void of;
    }
    for (const { job, of } of started) {
      if (used >= tokens) break;
      if (of && of.used >= of.tokens) continue;
      queue.leave(job);
      if (of) of.count += 1;
      const cost = hasRate ? (decodeBody(job.body)?.options.cost ?? 1) : 1;
      used += cost;
      if (of) of.used += cost;
      if (!this.in.slots.has(job)) {
        if (of && of.most < Infinity) this.in.slots.set(job, { line: of.line, keep: keepOf(of.rule) });
        else if (rule.concurrency) this.in.slots.set(job, { line: null, keep: '' });
      }
      claimed.push(job);
    }

    let turn = 0;
    const aside: Candidate[] = [];
    for (const of of this.candidates.values()) {
      if (of.count > 0) {
        of.turn = of.began + of.count * of.step;
        of.line.turn = Math.round(of.turn);
        turn = Math.max(turn, of.began);
        if (of.rule.rate && of.used > 0) {
          const { next } = this.charged(of.line.name, of.rule, of.used);
          of.nextMs = next;
          of.tokens = next > 0 ? 0 : 1;
        }
      }
      of.room = of.rule.paused ? 0 : Math.min(of.most - of.running - of.count, of.tokens);
      if (of.room < 1 || ((of.count > 0 || of.isEmpty) && sizeOf(of.line) === 0)) aside.push(of);
      else if (of.count > 0) of.line.ready = of.line.turn;
    }
    for (const of of aside) this.putAside(of);
    if (turn > 0) this.in.advanceTurn(turn);
    if (rule.rate && used > 0) {
      nextMs = this.charged('q', rule, used).next;
      tokens = nextMs > 0 ? 0 : tokens - used;
    }
    free -= claimed.length;
    for (const job of claimed) queue.hold(job, this.worker);
    if (claimed.length > 0) this.worker.leaseAt = now + this.call.leaseMs;
    if (claimed.length > 0) queue.say(claimed.map(activated), this.limits);

    const ready = [...this.in.lines.values()].some((line) => line.ready !== null);
    const waits = queue.wait.size + queue.prioritized.size > 0 || ready;
    if ((isCut || claimed.length >= want) && tokens >= 1 && free >= 1 && waits) queue.ring();
    return { claimed, isCut, supply: this.supplyOf(isCut, claimed.length, want, tokens, nextMs) };
  }

  private supplyOf(isCut: boolean, count: number, want: number, tokens: number, nextMs: number): Supply {
    if (isCut || count >= want) return 'more';
    const rests = [...this.in.lines.values()].flatMap(({ restsUntil }) => restsUntil ?? []);
    const first = rests.length > 0 ? Math.min(...rests) - this.now : null;
    if (count === 0 && tokens >= 1 && first === null) this.in.turnOff();
    const opens = tokens < 1 ? nextMs : first;
    return opens === null ? 'empty' : { limitedForMs: Math.max(1, Math.ceil(opens)) };
  }

  private charged(field: LimitField, rule: LimitRule, count: number): { next: number } {
    const { blocked, rate } = this.in.use(field);
    const use = { blocked, rate: rateCharged(rule.rate as never, rate, this.now, count) };
    this.in.setUse(field, use);
    const { left, nextMs } = roomOf(rule, { ...use, blocked: 0 }, this.now);
    return { next: left < 1 ? Math.max(0, nextMs) : 0 };
  }

  /** Jobs of `wait` and `prioritized` go to their lines, but for those that have a slot already, which it answers. */
  private sortArrivals(): MemoryJob[] {
    const { queue } = this;
    const arrivals: [MemoryJob, number][] = [];
    let bytes = 0;
    const own: MemoryJob[] = [];
    const { maxBytes = Infinity } = this.call;
    for (const job of queue.wait) {
      if (arrivals.length + own.length >= RULES.sortMax || bytes >= maxBytes) break;
      if (this.in.slots.has(job)) own.push(job);
      else {
        arrivals.push([job, 0]);
        bytes += Buffer.byteLength(job.body);
      }
    }
    for (const job of queue.prioritized.sorted()) {
      if (arrivals.length + own.length >= RULES.sortMax || bytes >= maxBytes) break;
      if (this.in.slots.has(job)) own.push(job);
      else {
        arrivals.push([job, Math.floor(job.score / RULES.ranks)]);
        bytes += Buffer.byteLength(job.body);
      }
    }
    for (const job of own.toReversed()) {
      queue.leave(job);
      queue.wait.unshift(job);
    }
    for (const [job] of arrivals) queue.leave(job);
    queue.toLines(arrivals.map(([job, priority]) => ({ job, name: this.in.lineNameOf(job), priority })));
    return own;
  }

  private load(line: MemoryLine): Candidate {
    const known = this.candidates.get(line);
    if (known) return known;
    const rule = this.in.ruleOf(line.name);
    const most = mostRunning(rule);
    const running = most < Infinity ? this.in.runningOf(line) : 0;
    const free = Math.max(0, most - running);
    const { left, nextMs } = roomOf(rule, this.in.use(line.name), this.now);
    const of: Candidate = {
      line,
      rule,
      most,
      step: 1024 / (rule.weight ?? 1),
      tokens: left,
      nextMs,
      room: Math.min(rule.paused ? 0 : free, left),
      running,
      turn: line.ready ?? line.turn,
      began: line.ready ?? line.turn,
      isEmpty: false,
      got: 0,
      count: 0,
      used: 0,
    };
    this.candidates.set(line, of);
    return of;
  }

  private chooseOfLines(most: number): void {
    for (const line of this.in.lines.values()) {
      if (line.restsUntil === null || line.restsUntil > this.now) continue;
      line.restsUntil = null;
      line.ready ??= 0;
    }
    for (const line of this.book
      .ready()
      .filter(({ ready }) => ready === 0)
      .slice(0, RULES.sortMax))
      line.ready = Math.max(line.turn, this.in.turn(), 1);
    let left = most;
    for (let behind = 0; left > 0 && behind < RULES.claimMax;) {
      const rows = this.book.ready().slice(behind, behind + Math.min(left, RULES.sortMax));
      if (rows.length === 0) return;
      behind += rows.length;
      const alive = rows.map((line) => this.load(line)).filter(({ room }) => room >= 1);
      left = this.takeTurns(alive, left);
    }
  }

  private takeTurns(first: readonly Candidate[], most: number): number {
    let alive = first;
    let left = most;
    while (left > 0 && alive.length > 0) {
      const share = Math.ceil(left / alive.length);
      const from = Math.min(...alive.map(({ turn }) => turn));
      const still: Candidate[] = [];
      for (const of of alive) {
        if (of.turn >= from + share * 1024) still.push(of);
        else if (left > 0) {
          const count = Math.min(left, of.room, Math.max(1, Math.floor((share * 1024) / of.step + 0.5)));
          const taken = count >= 1 ? this.takeOf(of, count) : 0;
          of.isEmpty = taken < count;
          left -= taken;
          if (taken === count && of.room >= 1) still.push(of);
        }
      }
      alive = still;
    }
    return left;
  }

  private takeOf(of: Candidate, count: number): number {
    const jobs = inOrder(of.line).slice(of.got, of.got + count);
    for (const job of jobs) this.choices.push({ job, of });
    of.got += jobs.length;
    of.room -= jobs.length;
    of.turn += jobs.length * of.step;
    return jobs.length;
  }

  /** It waits for its rate, for a slot or for jobs, or it goes. */
  private putAside(of: Candidate): void {
    const { line } = of;
    line.ready = null;
    const rest = (at: number) => void (line.restsUntil = Math.ceil(at));
    if (of.tokens < 1) return rest(this.now + of.nextMs);
    const running = of.most < Infinity ? of.running + of.count : this.in.runningOf(line);
    if (running > 0 || sizeOf(line) > 0) return;
    const overAt = useOverAt(of.rule, this.in.use(line.name), this.now);
    if (overAt > this.now) return rest(overAt);
    this.in.lines.delete(line.name);
    this.in.setUse(line.name, null);
  }
}

function sizeOf({ jobs }: MemoryLine): number {
  let size = 0;
  for (const { jobs: some } of jobs.values()) size += some.size;
  return size;
}

function inOrder({ jobs }: MemoryLine): MemoryJob[] {
  return [...jobs].toSorted(([a], [b]) => a - b).flatMap(([, { jobs: some }]) => [...some]);
}

function keepOf({ order, onDead }: LimitRule): Slot['keep'] {
  if (order !== 'strict') return '';
  return onDead === 'block' ? 'block' : 'strict';
}

function groupOf({ body }: MemoryJob): string | undefined {
  return decodeBody(body)?.options.group;
}

/** The verbs of limits on queues in memory. */
export function limitVerbs(verbs: Verbs): LimitVerbs {
  return {
    set: (queue, field, part, rule) => verbs.on('limits', queue, (q) => q.limits.set(field, part, rule)),
    charge: (queue, changes) => verbs.on('limits', queue, (q) => q.limits.charge(changes)),
    list: (queue) => verbs.on('limits', queue, (q) => q.limits.list()),
    group: (queue, group) => verbs.on('limits', queue, (q) => q.limits.stateOf(`g:${group}`)),
    groups: (queue, cursor, limit) =>
      verbs.on('limits', queue, (q) => {
        const from = Number(cursor);
        const all = q.limits.groups();
        const next = from + limit < all.length ? String(from + limit) : null;
        return { groups: all.slice(from, from + limit), next };
      }),
  };
}
