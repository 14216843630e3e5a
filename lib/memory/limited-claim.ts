import type { ExchangeCall, QueueLimits, Supply } from '../contract/engine.js';
import type { LimitField, LimitRule } from '../contract/limit-verbs.js';
import { decodeBody } from '../job/job-record.js';
import { RULES } from '../job/rules.js';
import { activated } from './event-log.js';
import { agedOrder, inOrder, keepOf, sizeOf, type LimitBook, type LineEntry } from './limit-book.js';
import type { MemoryJob, MemoryLine } from './memory-job.js';
import type { MemoryQueue } from './memory-queue.js';
import type { MemoryWorker } from './memory-worker.js';
import { isAffordable, isCharged, mostRunning, roomOf, useCharged, useOverAt, type Room } from './rates.js';

/** The claimed jobs, and whether more could be claimed but did not fit the maximum size. */
export interface Claimed {
  readonly claimed: MemoryJob[];
  readonly isCut: boolean;
}

/** The answer of a claim under limits. */
export interface LimitedAnswer extends Claimed {
  readonly supply: Supply;
  /** Whether limits keep waiting jobs from starting. */
  readonly isHeldBack: boolean;
}

/** A line during a claim. */
interface Candidate {
  readonly line: MemoryLine;
  readonly rule: LimitRule;
  readonly most: number;
  readonly step: number;
  running: number;
  /** Whether the line had fewer jobs than were requested. */
  isEmpty: boolean;
  tokens: number;
  nextMs: number;
  readonly costLeft: number;
  /** Whether its next job costs more than its rate has left. */
  isCostly: boolean;
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

/** Claims in a queue with limits or groups, like `claim-limited.lua`: it chooses jobs first, and then moves them. */
export class LimitedClaim {
  private readonly now: number;
  private readonly in: LimitBook['inside'];
  private readonly choices: Choice[] = [];
  private readonly candidates = new Map<MemoryLine, Candidate>();
  /** Jobs that came to the line of all other jobs before their name had limits. They go to the line of their name. */
  private readonly late: LineEntry[] = [];
  /** Whether a line may stay in `ready` while it waits for a slot, because many lines are ready. */
  private mayStay = false;
  /** Whether the claim stopped before the last lines, because many lines had no job that may start. */
  private hasUnseen = false;

  private readonly book: LimitBook;
  private readonly isByRunning: boolean;

  constructor(
    private readonly queue: MemoryQueue,
    private readonly worker: MemoryWorker,
    private readonly call: ExchangeCall,
    private readonly limits: QueueLimits,
  ) {
    this.now = queue.now;
    this.book = queue.limits;
    this.in = this.book.inside;
    this.isByRunning = this.book.isByRunning;
  }

  run(): LimitedAnswer {
    const { queue, now } = this;
    const want = Math.min(this.call.want, RULES.sortMax);
    if (queue.pausedAt !== null) return { claimed: [], isCut: false, supply: 'paused', isHeldBack: false };
    const rule = this.in.rule('q');
    const room = roomOf(rule, this.in.use('q'), now);
    let { left: tokens, nextMs } = room;
    this.choose(want, tokens, rule);
    const { claimed, isCut, used, isCostly } = this.take(rule, room);
    this.settleLines();
    this.toLinesAgain(this.late);
    if (used > 0 && isCharged(rule, this.in.use('q'))) {
      nextMs = this.charged('q', rule, used);
      tokens = nextMs > 0 ? 0 : tokens - used;
    }
    if (isCostly) [tokens, nextMs] = [0, roomOf(rule, this.in.use('q'), now).nextMs];
    for (const job of claimed) queue.hold(job, this.worker);
    if (claimed.length > 0) this.worker.leaseAt = now + this.call.leaseMs;
    if (claimed.length > 0) queue.say(claimed.map(activated), this.limits);
    const ready = [...this.in.lines.values()].some((line) => line.ready !== null);
    const waits = queue.wait.size + queue.prioritized.size > 0 || ready;
    const mayMore = tokens >= 1 && this.slotsLeft(rule) >= 1;
    if ((isCut || claimed.length >= want) && mayMore && waits) queue.ring();
    const isShort = !isCut && claimed.length < want;
    const inLines = () => [...this.in.lines.values()].some((line) => sizeOf(line) > 0);
    const isHeldBack = isShort && (queue.wait.size + queue.prioritized.size > 0 || inLines());
    const supply = this.supplyOf(isCut, claimed.length, want, tokens, nextMs);
    return { claimed, isCut, supply, isHeldBack };
  }

  /** How many jobs may start by the concurrency of the queue. A job that has a slot already does not count. */
  private slotsLeft(rule: LimitRule): number {
    return mostRunning(rule) - (rule.concurrency ? this.in.slotCount() : 0);
  }

  /** Chooses the jobs that start. */
  private choose(want: number, tokens: number, rule: LimitRule): void {
    const { queue, book } = this;
    const { hasLines } = book;
    const own = hasLines ? this.sortArrivals() : [];
    let free = this.slotsLeft(rule);
    const mayStart = this.call.maySuspect && tokens >= 1 ? [...queue.suspects].slice(0, RULES.sortMax) : [];
    // The suspects of paused or full groups do not hold back the others.
    for (const job of mayStart) {
      if (this.choices.length > 0) break;
      if (this.in.slots.has(job)) {
        const { line } = this.in.slots.get(job)!;
        const of = hasLines && line ? this.load(line) : null;
        if (of && (of.tokens < 1 || of.rule.paused)) continue;
        this.choices.push({ job, of });
        if (of) of.running -= 1;
      } else if (free >= 1) {
        const of = hasLines ? this.load(this.in.lineNamed(this.in.lineNameOf(job))) : null;
        if (of && of.room < 1) continue;
        this.choices.push({ job, of });
        if (of) of.room -= 1;
        free -= 1;
      }
    }
    const left = () => Math.min(want, tokens) - this.choices.length;
    if (hasLines) {
      this.mayStay = book.ready().length > 4 * Math.min(this.call.want, RULES.sortMax);
      for (const job of own.slice(0, Math.max(0, left()))) this.choices.push({ job, of: null });
      const before = this.choices.length;
      this.chooseOfLines(Math.min(left(), free));
      if ((this.call.perTurn ?? 1) === 1) this.orderByRounds(before);
      return;
    }
    let most = Math.min(left(), free);
    for (const job of [...queue.wait, ...queue.prioritized.sorted()]) {
      if (most < 1) break;
      this.choices.push({ job, of: null });
      most -= 1;
    }
  }

  /** Takes the chosen jobs, as far as their bytes and costs allow. */
  private take(rule: LimitRule, { left, costLeft }: Room): Claimed & { used: number; isCostly: boolean } {
    const { maxBytes = Infinity } = this.call;
    const claimed: MemoryJob[] = [];
    let used = 0;
    let bytes = 0;
    let isCostly = false;
    const over = this.choices.findIndex(({ job }, i) => {
      bytes += Buffer.byteLength(job.body);
      return bytes > maxBytes && i > 0;
    });
    const hasRate = this.book.flags.includes('r');
    for (const { job, of } of over < 0 ? this.choices : this.choices.slice(0, over)) {
      if (used >= left) break;
      const name = of?.line.name === '' ? this.in.lineNameOf(job) : '';
      if (name !== '') {
        const priority = decodeBody(job.body)?.options.priority ?? 0;
        this.late.push({ job, name, priority, isFirst: job.stalls > 0 });
        continue;
      }
      if (of && of.used >= of.tokens) continue;
      const cost = hasRate ? (decodeBody(job.body)?.options.cost ?? 1) : 1;
      isCostly = !isAffordable(rule, cost, used, costLeft);
      if (isCostly) break;
      if (of && !isAffordable(of.rule, cost, of.used, of.costLeft)) {
        // The later jobs of the line wait too.
        of.tokens = of.used;
        of.isCostly = true;
        continue;
      }
      this.queue.leave(job);
      if (of) of.count += 1;
      // The probe jobs of a breaker are counted, whatever they cost.
      used += rule.rate ? cost : 1;
      if (of) of.used += of.rule.rate ? cost : 1;
      if (!this.in.slots.has(job)) {
        if (of && of.most < Infinity) this.in.slots.set(job, { line: of.line, keep: keepOf(of.rule) });
        else if (rule.concurrency) this.in.slots.set(job, { line: null, keep: '' });
      }
      claimed.push(job);
    }
    return { claimed, isCut: over >= 0 || this.late.length > 0, used, isCostly };
  }

  /** Updates the lines that were looked at: a line continues, waits, or is deleted. */
  private settleLines(): void {
    let [turn, lastTurn, hasRounds] = [0, 0, false];
    const aside: Candidate[] = [];
    const served = Math.max(this.in.turn(), 1) + 1;
    for (const of of this.candidates.values()) {
      if (of.count > 0) {
        of.line.turn = this.isByRunning ? served : Math.round(of.began + of.count * of.step);
        // A suspect may start before the turn of its line. The queue's turn stays as it is.
        if (of.got > 0) {
          turn = Math.max(turn, this.isByRunning ? served : of.began);
          lastTurn = Math.max(lastTurn, of.line.turn);
        }
        if (of.used > 0 && isCharged(of.rule, this.in.use(of.line.name))) {
          of.nextMs = this.charged(of.line.name, of.rule, of.used);
          of.tokens = of.nextMs > 0 ? 0 : 1;
        }
      }
      if (of.isCostly) {
        of.tokens = 0;
        of.nextMs = roomOf(of.rule, this.in.use(of.line.name), this.now).nextMs;
      }
      hasRounds ||= of.got > 1;
      const stays =
        this.mayStay &&
        of.count > 0 &&
        of.most < Infinity &&
        of.tokens >= 1 &&
        !of.isEmpty &&
        !of.rule.paused;
      of.room = of.rule.paused ? 0 : Math.min(of.most - of.running - of.count, of.tokens);
      if (!stays && (of.room < 1 || ((of.count > 0 || of.isEmpty) && sizeOf(of.line) === 0))) aside.push(of);
      else if (of.count > 0) of.line.ready = this.placeOf(of.line, (of.running + of.count) * of.step);
    }
    for (const of of aside) this.putAside(of);
    // A line that had several turns at once, because no other line was ready, owes none of them to lines that come later.
    if (hasRounds && !this.isByRunning) turn = Math.max(turn, this.book.ready()[0]?.ready ?? lastTurn);
    // 1 is the first turn of all.
    if (turn > 1) this.in.advanceTurn(turn);
  }

  private supplyOf(isCut: boolean, count: number, want: number, tokens: number, nextMs: number): Supply {
    if (isCut || count >= want) return 'more';
    const rests = [...this.in.lines.values()].flatMap(({ restsUntil }) => restsUntil ?? []);
    const first = rests.length > 0 ? Math.min(...rests) - this.now : null;
    if (count === 0 && tokens >= 1 && first === null) this.in.turnOff();
    const opens = this.hasUnseen ? 0 : tokens < 1 ? nextMs : first;
    return opens === null ? 'empty' : { limitedForMs: Math.max(1, Math.ceil(opens)) };
  }

  private charged(field: LimitField, rule: LimitRule, count: number): number {
    const use = useCharged(rule, this.in.use(field), this.now, count);
    this.in.setUse(field, use);
    const { left, nextMs } = roomOf(rule, { ...use, blocked: 0 }, this.now);
    return left < 1 ? Math.max(0, nextMs) : 0;
  }

  /** Sorts jobs of `wait` and `prioritized` into their lines. Returns the jobs that already have a slot: these are not moved. Jobs
   * whose worker was lost, or gave them back, go to the front. */
  private sortArrivals(): MemoryJob[] {
    const { queue } = this;
    const entries: LineEntry[] = [];
    let bytes = 0;
    const own: MemoryJob[] = [];
    const { maxBytes = Infinity } = this.call;
    const returned = [...queue.wait].filter(({ isReturned, stalls }) => isReturned || stalls > 0).length;
    const most = Math.max(RULES.sortMax, Math.min(returned, RULES.returnedMax));
    for (const job of [...queue.wait, ...queue.prioritized.sorted()]) {
      if (entries.length + own.length >= most || bytes >= maxBytes) break;
      const hasSlot = this.in.slots.has(job);
      if (hasSlot && !this.mustWait(job)) own.push(job);
      else {
        const priority = hasSlot || job.place === 'wait' ? 0 : Math.floor(job.score / RULES.ranks);
        entries.push({
          job,
          name: this.in.lineNameOf(job),
          priority,
          isFirst: hasSlot || job.isReturned || job.stalls > 0,
        });
        bytes += Buffer.byteLength(job.body);
      }
    }
    for (const job of own.toReversed()) {
      queue.leave(job);
      queue.wait.unshift(job);
    }
    this.toLinesAgain(entries);
    return own;
  }

  private toLinesAgain(entries: readonly LineEntry[]): void {
    for (const { job } of entries) {
      this.queue.leave(job);
      this.book.release(job, 'gone');
      job.isReturned = false;
    }
    this.queue.toLines(entries);
  }

  /** Whether a job must wait for its turn although it has a slot: its group is paused or held, or has a rate. */
  private mustWait(job: MemoryJob): boolean {
    const { line, isDead } = this.in.slots.get(job)!;
    if (!line) return false;
    // A dead job that was retried has no slot that counts.
    if (isDead) return true;
    const rule = this.in.ruleOf(line.name);
    return (
      rule.paused === true || Boolean(rule.rate) || roomOf(rule, this.in.use(line.name), this.now).left < 1
    );
  }

  private load(line: MemoryLine): Candidate {
    const known = this.candidates.get(line);
    if (known) return known;
    const rule = this.in.ruleOf(line.name);
    const most = this.in.stoppedOf(line) > 0 ? 0 : mostRunning(rule);
    const running = most < Infinity ? this.in.runningOf(line) : 0;
    const free = Math.max(0, most - running);
    const step = RULES.turnStep / (rule.weight ?? 1);
    const turn = this.isByRunning ? running * step : Math.max(line.turn, this.in.turn(), 1);
    const { left, nextMs, costLeft } = roomOf(rule, this.in.use(line.name), this.now);
    const of: Candidate = {
      line,
      rule,
      most,
      step,
      tokens: left,
      nextMs,
      costLeft,
      isCostly: false,
      room: Math.min(rule.paused ? 0 : free, left),
      running,
      turn,
      began: turn,
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
      .slice(0, RULES.claimMax))
      line.ready = this.isByRunning
        ? this.placeOf(line, this.load(line).began)
        : Math.max(line.turn, this.in.turn(), 1);
    let left = most;
    for (let behind = 0; left > 0 && behind < RULES.claimMax;) {
      const rows = this.book.ready().slice(behind, behind + Math.min(left, RULES.sortMax));
      if (rows.length === 0) break;
      behind += rows.length;
      const alive = rows.map((line) => this.load(line)).filter(({ room }) => room >= 1);
      left = this.takeTurns(alive, left);
      this.hasUnseen = left > 0 && behind >= RULES.claimMax && this.book.ready().length > behind;
    }
  }

  /** The second job of a line must not start before the first one of another. */
  private orderByRounds(from: number): void {
    const nth = new Map<Candidate, number>();
    const rounds = this.choices.splice(from).map((choice) => {
      const of = choice.of!;
      const n = nth.get(of) ?? 0;
      nth.set(of, n + 1);
      return { choice, round: Math.floor((of.began + n * of.step) / RULES.turnStep) };
    });
    this.choices.push(...rounds.toSorted((a, b) => a.round - b.round).map(({ choice }) => choice));
  }

  private takeTurns(from: readonly Candidate[], most: number): number {
    let alive = from;
    let left = most;
    while (left > 0 && alive.length > 0) {
      const weights = alive.reduce((sum, { step }) => sum + RULES.turnStep / step, 0);
      const { perTurn = 1 } = this.call;
      const share = perTurn > 1 ? perTurn : Math.max(1, Math.floor(left / weights));
      const round = share * RULES.turnStep;
      const first = Math.min(...alive.map(({ turn }) => turn));
      const still: Candidate[] = [];
      for (const of of alive) {
        const ahead = of.turn - first;
        if (ahead >= round) still.push(of);
        else if (left > 0) {
          // If lines are served by their running jobs, each gives only as many as it lacks at the end of the round.
          const given = this.isByRunning && perTurn === 1 ? round - ahead : round;
          const count = Math.min(left, of.room, Math.max(1, Math.floor(given / of.step + 0.5)));
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
    const { aging } = this.in.rule('q');
    const all = aging ? agedOrder(of.line, aging, of.got + count, this.now) : inOrder(of.line);
    const jobs = all.slice(of.got, of.got + count);
    for (const job of jobs) this.choices.push({ job, of });
    of.got += jobs.length;
    of.room -= jobs.length;
    of.turn += jobs.length * of.step;
    return jobs.length;
  }

  /** Where a line stands in `ready`, like `place_text` of the scripts. */
  private placeOf({ turn }: MemoryLine, units: number): number {
    if (!this.isByRunning) return turn;
    const running = Math.min(RULES.placesMax, Math.floor(units / RULES.turnStep));
    return running * RULES.placeStep + (Math.max(turn, 1) % RULES.placeStep);
  }

  /** Takes a line out of the turns. It waits for its rate, for a slot or for jobs, or it is deleted. */
  private putAside(of: Candidate): void {
    const { line } = of;
    line.ready = null;
    const rest = (at: number) => void (line.restsUntil = Math.ceil(at));
    if (of.tokens < 1) return rest(this.now + of.nextMs);
    const running = of.most < Infinity ? of.running + of.count : 0;
    if (running > 0 || this.in.hasSlots(line) || sizeOf(line) > 0) return;
    const overAt = useOverAt(of.rule, this.in.use(line.name), this.now);
    if (overAt === Infinity) return;
    if (overAt > this.now) return rest(overAt);
    this.in.dropLine(line.name);
  }
}
