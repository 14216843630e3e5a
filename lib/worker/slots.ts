import { Log } from '../contract/log.js';
import type { Supply } from '../contract/engine.js';
import { StrictTurns, type Turn, type Turns } from './turns.js';

/** A queue as the slots it runs on see it. */
export interface SlotUser {
  /** Whether it may claim: neither paused nor stopping. */
  readonly open: boolean;
  /** Jobs claimed and not started. */
  readonly held: number;
  /** Jobs it may claim beyond the free slots. */
  readonly ahead: number;
  /** Its turn has come: an exchange soon. */
  ask(): void;
  /** Starts one of the jobs it has claimed. */
  startOne(): void;
  /** All slots are taken: what has woken it is for others. */
  noSlot(): void;
  /** More was claimed than there are slots for: it goes back. */
  giveBack(): void;
}

/**
 * How long a queue counts as empty after it was, where nobody listens to its bell because all slots are taken. Only while jobs
 * are so fast that they are claimed ahead of their slots: then it is what they are ahead by.
 */
const TRUST_MS = 5;
/** Asked again so soon, it is known to be empty still when that time is over, and nobody has to wait for it. */
const REFRESH_MS = TRUST_MS / 2;
/** Behind one that failed. */
const DEAL_AGAIN_MS = 1_000;

/** The place of one queue among those that share the slots. */
export class Seat implements Turn {
  asked = 0;
  private emptyIn = -1;
  private emptyAt = 0;
  private rung = false;
  private away = false;

  constructor(
    private readonly slots: Slots,
    readonly user: SlotUser,
    readonly weight: number,
  ) {}

  get open(): boolean {
    return this.user.open;
  }

  get held(): number {
    return this.user.held;
  }

  get ahead(): number {
    return this.user.ahead;
  }

  get dry(): boolean {
    if (this.away) return true;
    if (this.emptyIn < 0) return false;
    return this.emptyIn === this.slots.round || (this.slots.isHasty && this.age < TRUST_MS);
  }

  get doubtful(): boolean {
    return this.emptyIn >= 0 && !this.dry;
  }

  /** Busy, with jobs so fast that they are claimed ahead. */
  get isHasty(): boolean {
    return this.emptyIn < 0 && this.ahead > 0;
  }

  /** Dry only because it was so a moment ago, and that moment is nearly over. */
  get fades(): boolean {
    return this.emptyIn >= 0 && this.emptyIn !== this.slots.round && this.age >= REFRESH_MS;
  }

  /** Whether a handler could start now. */
  get hasFree(): boolean {
    return this.slots.running < this.slots.total;
  }

  /** How many jobs may be claimed now. */
  want(): number {
    return this.slots.want(this);
  }

  /** A claim of so many goes out. */
  asks(want: number): void {
    this.asked = want;
    this.rung = false;
  }

  /** It was answered; `asked` 0: nothing was to be claimed. */
  answered(asked: number, supply: Supply): void {
    this.asked = 0;
    this.away = false;
    if (asked > 0) {
      // A bell that came meanwhile may tell of something newer than the answer.
      if (supply !== 'more' && !this.rung) this.empty();
      else this.wakes();
    }
    this.slots.changed();
  }

  /** Its store cannot be reached: nobody waits for it. */
  failed(): void {
    this.asked = 0;
    this.away = true;
    this.slots.changed();
  }

  /** Something may be there to claim. Answers whether there is room for it, now or once it is its turn. */
  rings(): boolean {
    this.rung = this.asked > 0;
    this.wakes();
    this.slots.changed();
    return this.open && this.slots.hasRoom(this);
  }

  /** Whether it is, or will be, asked without anybody waking it: no slot has to be given up. */
  get waits(): boolean {
    return this.slots.isShared && this.open && this.slots.hasRoom(this);
  }

  begins(): void {
    this.slots.running += 1;
  }

  /** A handler has ended. */
  leaves(): void {
    this.slots.leaves();
  }

  /** Starts what fits. */
  fill(): void {
    this.slots.fill();
  }

  /** It was opened or closed. */
  changed(): void {
    this.wakes();
    this.slots.changed();
  }

  private get age(): number {
    return performance.now() - this.emptyAt;
  }

  private empty(): void {
    this.emptyIn = this.slots.round;
    this.emptyAt = performance.now();
  }

  private wakes(): void {
    if (this.emptyIn < 0) return;
    this.emptyIn = -1;
    this.slots.joined(this);
  }
}

/**
 * The slots of one pool: so many handlers run at once, for one queue or for several in turn. With one queue nothing is decided
 * here, and nothing of what decides is done.
 */
export class Slots {
  running = 0;
  /**
   * Rises when a slot is freed of a pool that was full. A full pool does not listen to bells, so what it knew to be empty may
   * not be so any more.
   */
  round = 0;
  private readonly seats: Seat[] = [];
  private readonly logger = new Log('QueueWorker');
  private filling = false;
  private dealing = false;

  constructor(
    readonly total: number,
    private readonly turns: Turns = new StrictTurns(),
  ) {}

  /** A place for one more queue, behind those that have one. */
  seat(user: SlotUser, weight = 1): Seat {
    const seat = new Seat(this, user, weight);
    this.seats.push(seat);
    return seat;
  }

  get isShared(): boolean {
    return this.seats.length > 1;
  }

  get isHasty(): boolean {
    return this.seats.some((seat) => seat.isHasty);
  }

  want(seat: Seat): number {
    const { total, running } = this;
    if (!this.isShared) return total - running + seat.ahead - seat.held;
    return this.turns.shares(this, this.seats, seat)[this.seats.indexOf(seat)]!;
  }

  hasRoom(seat: Seat): boolean {
    return this.isShared ? this.turns.hasRoom(this, this.seats, seat) : this.want(seat) > 0;
  }

  leaves(): void {
    if (this.isShared) {
      if (this.running === this.total) this.round += 1;
      this.changed();
    }
    this.running -= 1;
  }

  fill(): void {
    // A handler that ends at once asks for the next while this loop is on its way to it.
    if (this.filling) return;
    this.filling = true;
    try {
      while (this.running < this.total) {
        const seat = this.seats[this.isShared ? this.turns.next(this.seats) : 0];
        if (!seat?.open || seat.held === 0) return;
        seat.user.startOne();
      }
    } finally {
      this.filling = false;
    }
  }

  joined(seat: Seat): void {
    if (this.isShared) this.turns.joined(this.seats.indexOf(seat));
  }

  /** Whose turn it is may be another now. */
  changed(): void {
    if (!this.isShared || this.dealing) return;
    this.dealing = true;
    setImmediate(() => {
      this.dealing = false;
      if (this.logger.guard('dealing slots to queues', () => this.deal())) return;
      // Whoever was not asked is asked then.
      setTimeout(() => this.changed(), DEAL_AGAIN_MS).unref();
    });
  }

  private deal(): void {
    // What earlier ones have is known now, or is asked.
    this.fill();
    const isFull = this.running >= this.total && !this.isHasty;
    for (const { held, user } of this.seats) if (isFull && held > 0) user.giveBack();
    const shares = this.turns.shares(this, this.seats);
    for (const [i, seat] of this.seats.entries()) {
      if (!seat.open) continue;
      if (shares[i]! > 0 || (seat.asked === 0 && seat.dry && seat.fades)) seat.user.ask();
      else if (!this.turns.hasRoom(this, this.seats, seat)) seat.user.noSlot();
    }
  }
}
