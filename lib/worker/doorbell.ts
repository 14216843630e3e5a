import type { QueueEngine } from '../contract/engine.js';
import { Log } from '../contract/log.js';
import { isPassing, pause, repeatDelay, within } from '../contract/retry.js';
import { messageOf } from '../errors/thrown.js';
import type { Claimer } from './claimer.js';

/** How long a call that nothing interrupts is waited for at the end; closing the engine ends it. */
const FAREWELL_MS = 1000;
/** Idle for so long, a pool that sleeps since it held jobs begins its sleep anew, with its exchange left at the bell. */
const REST_MS = 10;
/** Where the store refuses to wait for bells: the lists themselves are asked so often. */
const UNHEARD_MS = 1000;
/** Longest sleep: after it the lists themselves are asked, whatever the bells said. */
export const MAX_BLOCK_MS = 5000;

/** A queue of which a look has nothing to tell. */
const QUIET = { work: false, dueInMs: null, leaseInMs: null, scheduleInMs: null };

/**
 * All idle pools of the process sleep in one blocking call on one connection. A bell wakes one of them; a pool that falls
 * asleep meanwhile interrupts the block to be listened for too.
 */
export class Doorbell {
  private readonly sleepers = new Map<string, Claimer>();
  private listened: ReadonlySet<string> = new Set();
  private readonly logger = new Log('QueueWorker');
  private restTimer: NodeJS.Timeout | undefined;
  /** The store could not keep an exchange when it was last asked to. */
  private refused = false;
  private blocking = false;
  private stopped = false;
  private running: Promise<void> | null = null;
  private signal: (() => void) | null = null;

  constructor(
    private readonly engine: QueueEngine,
    private readonly maxBlockMs = MAX_BLOCK_MS,
  ) {}

  join(sleeper: Claimer): void {
    if (this.stopped) return;
    this.sleepers.set(sleeper.queue, sleeper);
    this.running ??= this.loop();
    if (this.blocking) {
      if (!this.listened.has(sleeper.queue)) {
        this.wakeUp();
      } else if (!this.refused && this.sleepsAlone()) {
        // Not at once: while jobs come one upon another, to begin anew after each of them would cost more than it saves.
        if (this.restTimer) this.restTimer.refresh();
        else this.restTimer = setTimeout(() => this.rest(), REST_MS).unref();
      }
    } else {
      this.signal?.();
    }
  }

  leave(sleeper: Claimer): void {
    this.sleepers.delete(sleeper.queue);
    sleeper.recall();
  }

  /** The sleeper was woken and will not ask: another one is to. */
  passOn(sleeper: Claimer): void {
    this.leave(sleeper);
    // Where it cannot be rung, whoever sleeps looks at the lists when the connection is back.
    this.engine.ring(sleeper.queue).catch(() => undefined);
  }

  /**
   * Ends the loop; resolves when no call of it is on its way, or after a moment: on a connection that is down or silent the
   * call ends at its deadline, or with the connection.
   */
  async stop(): Promise<void> {
    if (!this.stopped) {
      this.stopped = true;
      clearTimeout(this.restTimer);
      this.sleepers.clear();
      this.signal?.();
      if (this.blocking) this.engine.interruptBell();
    }
    if (this.running) await within(FAREWELL_MS, this.running);
  }

  private async loop(): Promise<void> {
    let failures = 0;
    while (!this.stopped) {
      try {
        await this.round();
        failures = 0;
      } catch (error) {
        // The link says what happened; here it only means that bells may have been missed.
        this.blocking = false;
        if (this.stopped) return;
        await pause(isPassing(error) ? repeatDelay(error, ++failures) : UNHEARD_MS);
        for (const sleeper of this.sleepers.values()) this.wakeSafely(sleeper);
      }
    }
  }

  private async round(): Promise<void> {
    if (this.sleepers.size === 0) return this.someoneJoins();
    // What a job claimed at the bell did within this tick is known behind it.
    if (this.sleepsAlone()) await nextTurn();
    const alone = this.sleepsAlone();
    // It falls asleep again behind its exchange, unless it finds something; until then its bell is for others.
    if (alone?.active) return this.leave(alone);
    if (this.sleepers.size === 0) return;
    await ((alone && this.sleepAlone(alone)) ?? this.sleep());
  }

  /** Who sleeps with nobody beside it, so that an exchange can wait for its bell alone. Those that share slots ask in turn. */
  private sleepsAlone(): Claimer | undefined {
    if (this.sleepers.size > 1 || !this.engine.claimAtBell) return undefined;
    const [sleeper] = this.sleepers.values();
    return sleeper?.slots.isShared ? undefined : sleeper;
  }

  /** With its exchange left at the bell. It has to join again behind the answer. */
  private sleepAlone(sleeper: Claimer): Promise<void> | null {
    const { queue } = sleeper;
    const left = sleeper.leaveAtBell((call) => {
      const kept = this.engine.claimAtBell!(queue, call, this.maxBlockMs);
      this.refused = kept === null;
      return kept;
    });
    if (!left) return null;
    this.sleepers.delete(queue);
    const began = performance.now();
    this.begins([queue]);
    return left.then(({ rung, refusal }) => {
      this.blocking = false;
      if (refusal) throw refusal;
      if (rung) return this.stopped ? this.engine.ring(queue) : this.rang(queue);
      return this.lookSince(began);
    });
  }

  /** The one that sleeps could leave an exchange at the bell by now, and has not. */
  private rest(): void {
    this.restTimer = undefined;
    if (this.blocking && !this.refused && this.sleepsAlone()?.isIdle) this.wakeUp();
  }

  private wakeUp(): void {
    this.blocking = false;
    this.engine.interruptBell();
  }

  private begins(queues: readonly string[]): void {
    this.listened = new Set(queues);
    this.blocking = true;
  }

  private async sleep(): Promise<void> {
    const queues = [...this.sleepers.keys()];
    this.begins(queues);
    const began = performance.now();
    const rung = await this.engine.awaitBell(queues, this.maxBlockMs);
    this.blocking = false;
    if (this.stopped) {
      if (rung !== null) await this.engine.ring(rung);
    } else if (rung !== null) {
      await this.rang(rung);
    } else {
      await this.lookSince(began);
    }
  }

  /** No bell has rung: a sleep that lasted to its end is followed by a look. */
  private async lookSince(began: number): Promise<void> {
    if (this.stopped || performance.now() - began < this.maxBlockMs - 1) return;
    const asked = [...this.sleepers.values()];
    if (asked.length === 0) return;
    const looks = new Map((await this.engine.look(asked)).map((look) => [look.queue, look]));
    for (const { queue } of asked) this.sleepers.get(queue)?.looked(looks.get(queue) ?? { ...QUIET, queue });
  }

  /**
   * The bell was for one worker; where that is full by now, it goes to the next. A full one is not listened for until it
   * has found its line empty again, or it would be handed its own bell for as long as anything waits.
   */
  private async rang(queue: string): Promise<void> {
    const sleeper = this.sleepers.get(queue);
    if (sleeper?.wake()) return;
    if (sleeper) this.leave(sleeper);
    await this.engine.ring(queue);
  }

  private wakeSafely(sleeper: Claimer): void {
    try {
      sleeper.wake();
    } catch (error) {
      this.logger.error(`queue '${sleeper.queue}': the worker could not be woken: ${messageOf(error)}`);
    }
  }

  private someoneJoins(): Promise<void> {
    return new Promise((resolve) => {
      this.signal = () => {
        this.signal = null;
        resolve();
      };
    });
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
