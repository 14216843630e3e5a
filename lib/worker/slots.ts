import { Log } from '../contract/log.js';
import type { Supply } from '../contract/engine.js';

/**
 * How long a queue counts as empty after a claim found nothing, if all slots are taken so that no worker of this process waits
 * for its doorbell. This applies only while jobs are prefetched: then the prefetched jobs cover this time.
 */
const EMPTY_MS = 5;
/**
 * After this time a new claim finds out whether the queue is still empty, before the knowledge expires. So no slot waits for it.
 */
const REFRESH_MS = EMPTY_MS / 2;
/** How long to wait after a distribution of slots that failed. */
const DEAL_AGAIN_MS = 1_000;

/** A queue that runs its jobs on slots, alone or together with other queues. Its fields decide whose turn it is. */
export abstract class SlotUser {
  /** How many jobs a claim in flight may bring. */
  asked = 0;
  private emptyInRound = -1;
  private emptyAt = 0;
  /** Whether the doorbell rang while a claim was in flight. */
  private rang = false;
  private isUnreachable = false;

  constructor(
    readonly slots: Slots,
    /** Its share of the slots, relative to the weights of the other queues. Ignored in a strict order. */
    readonly weight = 1,
  ) {
    slots.users.push(this);
  }

  /** Whether it may claim: neither paused nor stopping. */
  abstract readonly open: boolean;
  /** How many of its jobs are claimed and have not started. */
  abstract readonly held: number;
  /** How many jobs it may claim beyond the free slots. */
  abstract readonly ahead: number;
  /** Claims with the next exchange, because it is the turn of this queue. */
  abstract exchangeSoon(): void;
  /** Starts one of the claimed jobs. Returns false if the store must first be asked whether it may start. */
  abstract startOne(): boolean;
  /** Called when all slots are taken. The ring that woke this queue is passed on to another worker. */
  abstract noSlot(): void;
  /** Gives back claimed jobs that have no slot. */
  abstract giveBack(): void;
  /** How many of its running jobs wait for others to fill a batch. */
  abstract readonly gathering: number;
  /** Ends the wait of these jobs. */
  abstract flush(): void;

  /** Whether the queue is known to have nothing to claim. */
  get isEmpty(): boolean {
    if (this.isUnreachable) return true;
    if (this.emptyInRound < 0) return false;
    return this.emptyInRound === this.slots.round || (this.slots.isPrefetching && this.age < EMPTY_MS);
  }

  /** Whether the queue was empty a while ago. It may claim like a queue that has jobs, but no other queue waits for it. */
  get isMaybeEmpty(): boolean {
    return this.emptyInRound >= 0 && !this.isEmpty;
  }

  /** Whether the queue is busy with jobs so fast that they are prefetched. */
  get isPrefetching(): boolean {
    return this.emptyInRound < 0 && this.ahead > 0;
  }

  /** Whether the queue counts as empty only because of an earlier claim, and that knowledge is about to expire. */
  get emptyIsExpiring(): boolean {
    return this.emptyInRound >= 0 && this.emptyInRound !== this.slots.round && this.age >= REFRESH_MS;
  }

  /** Whether this queue will get a turn without a doorbell. Then its ring need not be passed on. */
  get getsTurn(): boolean {
    return this.slots.isShared && this.open && this.slots.hasRoom(this);
  }

  /** How many jobs the queue may claim now. */
  room(): number {
    const { slots } = this;
    return slots.isShared ? slots.shareOf(this) : slots.total - slots.running + this.ahead - this.held;
  }

  claimSent(want: number): void {
    this.asked = want;
    this.rang = false;
  }

  /** @param asked 0 if the call did not claim. */
  claimAnswered(asked: number, supply: Supply): void {
    this.asked = 0;
    this.isUnreachable = false;
    if (asked > 0) {
      // The doorbell may have rung for a job that is newer than the answer.
      if (supply === 'more' || this.rang) this.mayHaveJobs();
      else {
        this.emptyInRound = this.slots.round;
        this.emptyAt = performance.now();
      }
    }
    this.slots.changed();
  }

  /** Called when a claim fails. While its store is unreachable, no other queue waits for this one. */
  claimFailed(): void {
    this.asked = 0;
    this.isUnreachable = true;
    this.slots.changed();
  }

  /** The doorbell of this queue rang. Returns whether a job would find a slot, now or when it is the turn of this queue. */
  rings(): boolean {
    this.rang = this.asked > 0;
    this.mayHaveJobs();
    this.slots.changed();
    return this.open && this.slots.hasRoom(this);
  }

  /** Called when the queue is opened or closed. */
  openChanged(): void {
    this.mayHaveJobs();
    this.slots.changed();
  }

  /** The queue no longer counts as empty. */
  mayHaveJobs(): void {
    if (this.emptyInRound < 0) return;
    this.emptyInRound = -1;
    this.slots.joined(this);
  }

  private get age(): number {
    return performance.now() - this.emptyAt;
  }
}

/**
 * The slots of one pool: how many handlers run at once, for one queue or for several that take turns. With one queue nothing has
 * to be decided, so no turns are computed.
 */
export class Slots {
  running = 0;
  /**
   * Increases when a slot of a full pool is freed. A full pool does not wait for doorbells, so a queue that was empty then may
   * have jobs now.
   */
  round = 0;
  /** The queues. Each adds itself. */
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

  /** Whether jobs that wait for others to fill a batch have all slots. Then no other job can start. */
  get areAllGathering(): boolean {
    return sum(this.users, 'gathering') >= this.total;
  }

  shareOf(user: SlotUser): number {
    return this.turns.shares(this, this.users, user)[this.users.indexOf(user)]!;
  }

  hasRoom(user: SlotUser): boolean {
    return this.isShared ? this.turns.hasRoom(this, this.users, user) : user.room() > 0;
  }

  /**
   * Changes how many jobs run at once. Running jobs beyond the new number finish. Jobs that have not started go back, and are
   * claimed again when there is a slot.
   */
  resize(total: number): void {
    const isLess = total < this.total;
    this.total = total;
    for (const user of this.users) {
      if (!user.open) continue;
      if (isLess) user.giveBack();
      else user.openChanged();
      user.exchangeSoon();
    }
    if (this.areAllGathering) for (const user of this.users) user.flush();
    this.fill();
  }

  /** Called when a job ended and its slot is free. */
  free(): void {
    if (this.isShared) {
      if (this.running >= this.total) this.round += 1;
      this.changed();
    }
    this.running -= 1;
  }

  /** Starts claimed jobs on the free slots. */
  fill(): void {
    // A handler that ends at once would call `fill` again inside this loop.
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

  /** Called when it may be the turn of another queue. */
  changed(): void {
    if (!this.isShared || this.dealing) return;
    this.dealing = true;
    setImmediate(() => {
      this.dealing = false;
      if (this.logger.guard('assigning slots to queues', () => this.deal())) return;
      // Queues that this distribution did not reach get their turn in the next one.
      setTimeout(() => this.changed(), DEAL_AGAIN_MS).unref();
    });
  }

  private deal(): void {
    // First start what is claimed: earlier queues have claimed all they have, or a claim of theirs is in flight.
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

/** Decides which of the queues that share slots may claim, and whose claimed job starts next. */
export interface Turns {
  /**
   * How many jobs each queue may claim now, by its index.
   *
   * @param asker makes a call anyway, to settle runs. The answer may show that its queue is no longer empty.
   */
  shares(slots: Slots, users: readonly SlotUser[], asker?: SlotUser): number[];
  /** Whether a job of this queue would find a slot if the claims in flight bring nothing. */
  hasRoom(slots: Slots, users: readonly SlotUser[], user: SlotUser): boolean;
  /** The index of the queue whose claimed job starts next, or -1. The job counts as started. */
  next(users: readonly SlotUser[]): number;
  /** Called when a queue that was empty may have jobs again. */
  joined(place: number): void;
}

/**
 * Strict order: the first queue that has jobs takes all slots, also those of claimed jobs of later queues that have not started.
 * Queues that may be empty all claim at the same time. A job starts only when it is known that all earlier queues are empty. Jobs
 * claimed in excess are given back.
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
 * Stride scheduling: every start moves a queue forward by the inverse of its weight, and the queue furthest behind is next. A
 * queue that was empty starts level with the others: it does not make up for the time in which it was empty.
 */
export class WeightedTurns implements Turns {
  private readonly passed: number[] = [];
  private front = 0;

  shares(slots: Slots, users: readonly SlotUser[], asker?: SlotUser): number[] {
    const held = sum(users, 'held');
    const free = slots.total - slots.running - held;
    const has = ({ open, isEmpty, isMaybeEmpty }: SlotUser) => open && !isEmpty && !isMaybeEmpty;
    const mayAsk = (user: SlotUser) => user.open && (!user.isEmpty || user === asker);
    // Queues that may be empty do not reserve slots: their part is offered to the other queues too.
    const sure = this.deal(free - sum(users.filter(has), 'asked'), users, has);
    const perhaps = this.deal(free - sum(users, 'asked'), users, mayAsk);
    const weights = sum(users, 'weight');
    return users.map((user, i) => {
      if (!mayAsk(user)) return 0;
      const own = user.held + user.asked;
      let share = has(user) ? sure[i]! : perhaps[i]!;
      if (share + own === 0) {
        // While others hold claimed jobs, slots are freed quickly, and some of them will go to this queue.
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

  /** Distributes free slots one by one, each to the queue that is furthest behind. */
  private deal(free: number, users: readonly SlotUser[], may: (user: SlotUser) => boolean): number[] {
    const shares = users.map(() => 0);
    // Jobs that are claimed, or that a call in flight may bring, count as started.
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

function sum(users: readonly SlotUser[], field: 'held' | 'asked' | 'weight' | 'gathering'): number {
  let total = 0;
  for (const user of users) total += user[field];
  return total;
}

/** The index of the smallest value for which `may` holds. If several are equal, the first. */
function least(values: readonly number[], may: (place: number) => boolean): number {
  let found = -1;
  for (let i = 0; i < values.length; i++) {
    if (may(i) && (found < 0 || values[i]! < values[found]!)) found = i;
  }
  return found;
}
