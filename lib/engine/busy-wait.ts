import { availableParallelism } from 'node:os';
// By name, since tests put clocks of their own in the place of the global timers.
import { setImmediate } from 'node:timers';

/** Turns of the event loop, of 1 to 2 µs where nothing else goes on: the answer of a Redis on this machine takes some 40. */
const TURNS = 128;
/** An add so soon behind the answer to the one before is one of several in turn. */
const SOON_MS = 0.2;
/** Adds in turn, at most, that are waited for asleep because it was of no use to wait awake. */
const MAX_ASLEEP = 1024;
/** Between two looks whether others want this core: that is a system call. */
const WAITS_PER_LOOK = 64;
/** As many times may this process be put aside between two looks; on a core of its own it is once or twice. */
const MAX_PREEMPTIONS = WAITS_PER_LOOK / 4;

/** What it needs of Node and of the machine. */
export interface BusyWaitHost {
  readonly cores: number;
  atNextTurn(act: () => void): void;
  /** Milliseconds on a clock that never goes back. */
  now(): number;
  /** How often so far this process had to make room for another one although it had something to do. */
  preemptions(): number;
}

const HOST: BusyWaitHost = {
  cores: availableParallelism(),
  atNextTurn: setImmediate,
  now: () => performance.now(),
  preemptions: () => process.resourceUsage().involuntaryContextSwitches,
};

/**
 * Where jobs are added one by one, each behind the answer to the one before, half of the time of an add goes into falling asleep and
 * being woken by Redis, which pays for it too. So the event loop is kept turning while such an answer may come at any moment: it looks
 * into its sockets at every turn. Whoever adds now and then is never waited for so, and where Redis is too far away for it, or others
 * want the core, it is tried with one add in a thousand.
 */
export class BusyWait {
  private inFlight = 0;
  private answeredAt = -Infinity;
  private isTurning = false;
  private turnsLeft = 0;
  /** How many of the next adds in turn are waited for asleep, and how many it was the last time. */
  private asleep = 0;
  private lastAsleep = 0;
  private waitsToLook = 1;
  /** At the look before; the first one, and the first behind a sleep, only take the number. */
  private preemptions = Infinity;

  constructor(private readonly host = HOST) {}

  /** An add has been sent. */
  begin(): void {
    if (this.inFlight++ > 0) return;
    this.turnsLeft = this.isWorthwhile() ? TURNS : 0;
    if (this.turnsLeft === 0 || this.isTurning) return;
    this.isTurning = true;
    this.host.atNextTurn(this.turn);
  }

  /** It has been answered, or has failed. */
  end(): void {
    this.inFlight--;
    this.answeredAt = this.host.now();
    if (this.turnsLeft > 0) this.lastAsleep = 0;
  }

  private readonly turn = (): void => {
    this.isTurning = this.inFlight > 0 && this.turnsLeft > 0;
    if (!this.isTurning) return;
    this.turnsLeft--;
    if (this.turnsLeft === 0) this.giveUp();
    else this.host.atNextTurn(this.turn);
  };

  private giveUp(): void {
    this.isTurning = false;
    this.sleepFor(this.lastAsleep * 2 + 1);
  }

  private isWorthwhile(): boolean {
    if (this.host.cores < 2 || this.host.now() - this.answeredAt > SOON_MS) return false;
    if (this.asleep > 0) {
      this.asleep--;
      return false;
    }
    return --this.waitsToLook > 0 || !this.isContested();
  }

  private isContested(): boolean {
    const before = this.preemptions;
    this.preemptions = this.host.preemptions();
    this.waitsToLook = WAITS_PER_LOOK;
    if (this.preemptions - before <= MAX_PREEMPTIONS) return false;
    this.sleepFor(MAX_ASLEEP);
    return true;
  }

  private sleepFor(adds: number): void {
    this.asleep = this.lastAsleep = Math.min(adds, MAX_ASLEEP);
    this.waitsToLook = 1;
    this.preemptions = Infinity;
  }
}
