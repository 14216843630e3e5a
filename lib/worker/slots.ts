import { Log } from '../contract/log.js';
import type { Supply } from '../contract/engine.js';

/**
 * How long a queue counts as empty after a claim found it so, if nobody waits for its doorbell because all slots are taken. Only while
 * jobs are prefetched: then the prefetched jobs cover this time.
 */
const EMPTY_MS = 5;
/** A claim at this age renews the knowledge before it expires, so that nobody has to wait for it. */
const REFRESH_MS = EMPTY_MS / 2;
/** After a deal that failed. */
const DEAL_AGAIN_MS = 1_000;

/** A queue that runs its jobs on slots, alone or with others: what is known of it to decide whose turn it is. */
export abstract class SlotUser {
  /** Jobs that a claim on its way may bring. */
  asked = 0;
  private emptyInRound = -1;
  private emptyAt = 0;
  /** A doorbell rang while a claim was on its way. */
  private rang = false;
  private isUnreachable = false;

  constructor(
    readonly slots: Slots,
    /** Its share of them, relative to the weights of the others; in a strict order it means nothing. */
    readonly weight = 1,
  ) {
    slots.users.push(this);
  }

  /** Whether it may claim: neither paused nor stopping. */
  abstract readonly open: boolean;
  /** Jobs claimed and not started. */
  abstract readonly held: number;
  /** Jobs it may claim beyond the free slots. */
  abstract readonly ahead: number;
  /** Its turn has come: claim, with the next exchange. */
  abstract exchangeSoon(): void;
  /** Starts one of the jobs it holds; false if it must ask first whether it may. */
  abstract startOne(): boolean;
  /** All slots are taken: the doorbell that woke it is for another worker. */
  abstract noSlot(): void;
  /** More was claimed than there are slots for: it goes back. */
  abstract giveBack(): void;

  /** Known to have nothing to claim. */
  get isEmpty(): boolean {
    if (this.isUnreachable) return true;
    if (this.emptyInRound < 0) return false;
    return this.emptyInRound === this.slots.round || (this.slots.isPrefetching && this.age < EMPTY_MS);
  }

  /** It was empty a while ago: it may claim like a queue that has jobs, and nobody waits for it. */
  get isMaybeEmpty(): boolean {
    return this.emptyInRound >= 0 && !this.isEmpty;
  }

  /** Busy, with jobs so fast that they are prefetched. */
  get isPrefetching(): boolean {
    return this.emptyInRound < 0 && this.ahead > 0;
  }

  /** Empty only because it was so a moment ago, and that moment is nearly over. */
  get emptyIsExpiring(): boolean {
    return this.emptyInRound >= 0 && this.emptyInRound !== this.slots.round && this.age >= REFRESH_MS;
  }

  /** Whether it will get a turn without a doorbell: then no slot has to be given up. */
  get getsTurn(): boolean {
    return this.slots.isShared && this.open && this.slots.hasRoom(this);
  }

  /** How many jobs it may claim now. */
  room(): number {
    const { slots } = this;
    return slots.isShared ? slots.shareOf(this) : slots.total - slots.running + this.ahead - this.held;
  }

  claimSent(want: number): void {
    this.asked = want;
    this.rang = false;
  }

  /** @param asked 0: it was not to claim anything. */
  claimAnswered(asked: number, supply: Supply): void {
    this.asked = 0;
    this.isUnreachable = false;
    if (asked > 0) {
      // A doorbell that rang meanwhile may tell of something newer than the answer.
      if (supply === 'more' || this.rang) this.mayHaveJobs();
      else {
        this.emptyInRound = this.slots.round;
        this.emptyAt = performance.now();
      }
    }
    this.slots.changed();
  }

  /** Its store cannot be reached: nobody waits for it. */
  claimFailed(): void {
    this.asked = 0;
    this.isUnreachable = true;
    this.slots.changed();
  }

  /** Its doorbell rang. Answers whether there is a slot for a job, now or once it is its turn. */
  rings(): boolean {
    this.rang = this.asked > 0;
    this.mayHaveJobs();
    this.slots.changed();
    return this.open && this.slots.hasRoom(this);
  }

  /** It was opened or closed. */
  openChanged(): void {
    this.mayHaveJobs();
    this.slots.changed();
  }

  private get age(): number {
    return performance.now() - this.emptyAt;
  }

  private mayHaveJobs(): void {
    if (this.emptyInRound < 0) return;
    this.emptyInRound = -1;
    this.slots.joined(this);
  }
}

/**
 * The slots of one pool: how many handlers run at once, for one queue or for several that take turns. With one queue there is nothing to
 * decide, and nothing of it is computed.
 */
export class Slots {
  running = 0;
  /**
   * Rises when a slot of a full pool is freed. A full pool does not wait for doorbells, so a queue that was empty may not be so any
   * more.
   */
  round = 0;
  /** Each adds itself. */
  readonly users: SlotUser[] = [];
  private readonly logger = new Log('QueueWorker');
  private filling = false;
  private dealing = false;

  constructor(
    public total: number,
    private readonly turns: Turns = new StrictTurns(),
  ) {}

  get isShared(): boolean {
    return this.users.length > 1;
  }

  get isPrefetching(): boolean {
    return this.users.some((user) => user.isPrefetching);
  }

  shareOf(user: SlotUser): number {
    return this.turns.shares(this, this.users, user)[this.users.indexOf(user)]!;
  }

  hasRoom(user: SlotUser): boolean {
    return this.isShared ? this.turns.hasRoom(this, this.users, user) : user.room() > 0;
  }

  /** From now on so many run at once. Those that run beyond it end; jobs that have not started go back, and are claimed anew as there is room. */
  resize(total: number): void {
    const isLess = total < this.total;
    this.total = total;
    for (const user of this.users) {
      if (!user.open) continue;
      if (isLess) user.giveBack();
      else user.openChanged();
      user.exchangeSoon();
    }
    this.fill();
  }

  /** A job ended, and its slot is free. */
  free(): void {
    if (this.isShared) {
      if (this.running >= this.total) this.round += 1;
      this.changed();
    }
    this.running -= 1;
  }

  /** Starts claimed jobs on the free slots. */
  fill(): void {
    // A handler that ends at once fills its slot again while this loop is about to.
    if (this.filling) return;
    this.filling = true;
    try {
      while (this.running < this.total) {
        const user = this.users[this.isShared ? this.turns.next(this.users) : 0];
        if (!user?.open || user.held === 0 || !user.startOne()) return;
      }
    } finally {
      this.filling = false;
    }
  }

  joined(user: SlotUser): void {
    if (this.isShared) this.turns.joined(this.users.indexOf(user));
  }

  /** It may be the turn of another queue now. */
  changed(): void {
    if (!this.isShared || this.dealing) return;
    this.dealing = true;
    setImmediate(() => {
      this.dealing = false;
      if (this.logger.guard('dealing slots to queues', () => this.deal())) return;
      // Queues that were left out get their turn then.
      setTimeout(() => this.changed(), DEAL_AGAIN_MS).unref();
    });
  }

  private deal(): void {
    // Earlier queues have either claimed what they have, or a claim of theirs is on its way.
    this.fill();
    const isFull = this.running >= this.total && !this.isPrefetching;
    for (const user of this.users) if (isFull && user.held > 0) user.giveBack();
    const shares = this.turns.shares(this, this.users);
    for (const [i, user] of this.users.entries()) {
      if (!user.open) continue;
      if (shares[i]! > 0 || (user.asked === 0 && user.isEmpty && user.emptyIsExpiring)) user.exchangeSoon();
      else if (!this.turns.hasRoom(this, this.users, user)) user.noSlot();
    }
  }
}

/** The order of the queues that share slots: which of them may claim, and whose claimed job starts next. */
export interface Turns {
  /**
   * How many jobs each queue may claim now, by its place.
   *
   * @param asker makes a call anyway, with its settlements, from which it may learn that it is not empty any more.
   */
  shares(slots: Slots, users: readonly SlotUser[], asker?: SlotUser): number[];
  /** Whether a job of this queue would find a slot if the claims on their way bring nothing. */
  hasRoom(slots: Slots, users: readonly SlotUser[], user: SlotUser): boolean;
  /** The place of the queue whose claimed job starts next, or -1; the job counts as started. */
  next(users: readonly SlotUser[]): number;
  /** A queue that was empty may have jobs again. */
  joined(place: number): void;
}

/**
 * The first queue that has jobs takes all slots; jobs of later queues that were claimed and have not started give way. Queues that may
 * be empty claim at the same time, not one after another: before a job starts it is known what all of them have, and jobs
 * claimed in excess go back.
 */
export class StrictTurns implements Turns {
  shares(slots: Slots, users: readonly SlotUser[], asker?: SlotUser): number[] {
    const shares = users.map(() => 0);
    for (const [place, user] of users.entries()) {
      if (!user.open || (user.isEmpty && user !== asker)) continue;
      const room = this.room(slots, users, place) - sum(users.slice(place), 'asked');
      shares[place] = Math.max(0, room + user.ahead);
      if (!user.isEmpty && !user.isMaybeEmpty) break;
    }
    return shares;
  }

  hasRoom(slots: Slots, users: readonly SlotUser[], user: SlotUser): boolean {
    return this.room(slots, users, users.indexOf(user)) + user.ahead > 0;
  }

  next(users: readonly SlotUser[]): number {
    const first = users.findIndex(({ open, held, isEmpty }) => open && (held > 0 || !isEmpty));
    return first >= 0 && users[first]!.held > 0 ? first : -1;
  }

  joined(): void {}

  private room({ total, running }: Slots, users: readonly SlotUser[], place: number): number {
    const own = sum(users.slice(0, place + 1), 'held');
    const later = sum(users, 'held') - own;
    return Math.max(total - running, Math.min(total, later)) - own;
  }
}

/**
 * Stride scheduling: every start moves a queue forward by the inverse of its weight, and the queue that is furthest behind is next. A
 * queue that was empty begins where the others are, so that it neither catches up nor waits.
 */
export class WeightedTurns implements Turns {
  private readonly passed: number[] = [];
  private front = 0;

  shares(slots: Slots, users: readonly SlotUser[], asker?: SlotUser): number[] {
    const held = sum(users, 'held');
    const free = slots.total - slots.running - held;
    const has = ({ open, isEmpty, isMaybeEmpty }: SlotUser) => open && !isEmpty && !isMaybeEmpty;
    const mayAsk = (user: SlotUser) => user.open && (!user.isEmpty || user === asker);
    // Nobody waits for queues that may be empty: what they would take is given to the others too.
    const sure = this.deal(free - sum(users.filter(has), 'asked'), users, has);
    const perhaps = this.deal(free - sum(users, 'asked'), users, mayAsk);
    const weights = sum(users, 'weight');
    return users.map((user, i) => {
      if (!mayAsk(user)) return 0;
      const own = user.held + user.asked;
      let share = has(user) ? sure[i]! : perhaps[i]!;
      if (share + own === 0) {
        // While others hold claimed jobs, slots are freed fast, and some of them will go to this queue.
        if (held > 0) share = Math.max(1, Math.floor((slots.total * user.weight) / weights));
        else if (user.isMaybeEmpty && free > 0) share = 1;
      }
      return share + Math.max(0, user.ahead - own);
    });
  }

  hasRoom({ total, running }: Slots, users: readonly SlotUser[], user: SlotUser): boolean {
    const held = sum(users, 'held');
    return total - running - held > 0 || (held > 0 && user.held === 0) || user.ahead > user.held;
  }

  next(users: readonly SlotUser[]): number {
    const place = least(
      users.map((user, i) => this.tagOf(user, i)),
      (i) => users[i]!.open && users[i]!.held > 0,
    );
    if (place >= 0) {
      const tag = this.tagOf(users[place]!, place);
      this.front = Math.max(this.front, tag);
      this.passed[place] = tag + 1 / users[place]!.weight;
    }
    return place;
  }

  joined(place: number): void {
    this.passed[place] = Math.max(this.passed[place] ?? 0, this.front);
  }

  /** Distributes free slots, one by user, each to the queue that is furthest behind. */
  private deal(free: number, users: readonly SlotUser[], may: (user: SlotUser) => boolean): number[] {
    const shares = users.map(() => 0);
    // Jobs that are claimed, or may be by a call on its way, count as started.
    const tags = users.map((user, i) => this.tagOf(user, i) + (user.held + user.asked) / user.weight);
    for (let left = free; left > 0; left--) {
      const place = least(tags, (i) => may(users[i]!));
      if (place < 0) break;
      shares[place]! += 1;
      tags[place]! += 1 / users[place]!.weight;
    }
    return shares;
  }

  private tagOf({ isEmpty }: SlotUser, place: number): number {
    const passed = this.passed[place] ?? 0;
    return isEmpty ? Math.max(passed, this.front) : passed;
  }
}

function sum(users: readonly SlotUser[], field: 'held' | 'asked' | 'weight'): number {
  let total = 0;
  for (const user of users) total += user[field];
  return total;
}

/** The place of the least value among those for which `may` holds; the first of several. */
function least(values: readonly number[], may: (place: number) => boolean): number {
  let found = -1;
  for (let i = 0; i < values.length; i++) {
    if (may(i) && (found < 0 || values[i]! < values[found]!)) found = i;
  }
  return found;
}
