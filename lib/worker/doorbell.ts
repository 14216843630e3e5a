import type { QueueEngine } from '../contract/engine.js';
import { Log } from '../contract/log.js';
import { FAREWELL_MS, isPassing, pause, repeatDelay, within } from '../contract/retry.js';
import { messageOf } from '../errors/thrown.js';
import type { Claimer } from './claimer.js';

/** After this idle time a sleeping pool starts its sleep again, so that its next exchange can wait at the doorbell. */
const REST_MS = 10;
/** How long to wait before the queues are checked if the store refuses blocking calls. */
const UNHEARD_MS = 1000;
/** Longest sleep. After it the process looks at the queues, even if no doorbell rang. */
export const MAX_BLOCK_MS = 5000;

/** The result of a check for a queue with nothing to do. */
const QUIET = { work: false, dueInMs: null, leaseInMs: null, scheduleInMs: null };

/**
 * All idle pools of the process wait in one blocking call on one connection. A ring wakes one of them. A pool that becomes idle
 * later interrupts the call, so that the next call waits for its doorbell too.
 */
export class Doorbell {
  private readonly sleepers = new Map<string, Claimer>();
  private listened: ReadonlySet<string> = new Set();
  private readonly logger = new Log('QueueWorker');
  private restTimer: NodeJS.Timeout | undefined;
  /** Whether the engine refused to let the last exchange wait at the doorbell. */
  private refused = false;
  private blocking = false;
  private stopped = false;
  private running: Promise<void> | null = null;
  private signal: (() => void) | null = null;
  private maxBlockMs = MAX_BLOCK_MS;

  constructor(private readonly engine: QueueEngine) {}

  /** Checks the queues at least this often from now on. */
  lookWithin(ms: number): void {
    this.maxBlockMs = Math.min(this.maxBlockMs, ms);
  }

  join(sleeper: Claimer): void {
    if (this.stopped) return;
    this.sleepers.set(sleeper.queue, sleeper);
    this.running ??= this.loop();
    if (this.blocking) {
      if (!this.listened.has(sleeper.queue)) {
        this.wakeUp();
      } else if (!this.refused && this.sleepsAlone()) {
        // Not at once: while jobs arrive in quick succession, starting the sleep again after each one costs more than it saves.
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

  /** Passes a ring on: this queue was woken and will not claim, so another worker is woken. */
  passOn(sleeper: Claimer): void {
    this.leave(sleeper);
    // If the ring fails, sleeping workers look at their queues when the connection is back.
    this.engine.ring(sleeper.queue).catch(() => undefined);
  }

  /**
   * Ends the loop. Resolves when its blocking call has ended, but waits at most a moment: on a dead connection the call ends only
   * at its deadline, or when the connection closes.
   */
  async stop(): Promise<void> {
    if (!this.stopped) {
      this.stopped = true;
      clearTimeout(this.restTimer);
      this.sleepers.clear();
      this.signal?.();
      if (this.blocking) this.engine.interruptBell();
    }
    // If nothing interrupts the blocking call, closing the engine ends it.
    if (this.running) await within(FAREWELL_MS, this.running);
  }

  private async loop(): Promise<void> {
    let failures = 0;
    while (!this.stopped) {
      try {
        await this.round();
        failures = 0;
      } catch (error) {
        // The connection logs its own failures. Here a failure only means that rings may have been missed.
        this.blocking = false;
        if (this.stopped) return;
        await pause(isPassing(error) ? repeatDelay(error, ++failures) : UNHEARD_MS);
        for (const sleeper of this.sleepers.values()) this.wakeSafely(sleeper);
      }
    }
  }

  private async round(): Promise<void> {
    if (this.sleepers.size === 0) return this.someoneJoins();
    // Wait one turn: a job claimed at the doorbell may settle within this tick.
    if (this.sleepsAlone()) await nextTurn();
    const alone = this.sleepsAlone();
    // This queue is about to exchange. If it finds nothing, it joins again; until then its rings are for other workers.
    if (alone?.active) return this.leave(alone);
    if (this.sleepers.size === 0) return;
    await ((alone && this.sleepAlone(alone)) ?? this.sleep());
  }

  /**
   * The only sleeping queue, if there is just one. Its exchange can then wait at its doorbell. Queues that share slots claim in
   * turn, so theirs cannot.
   */
  private sleepsAlone(): Claimer | undefined {
    if (this.sleepers.size > 1 || !this.engine.claimAtBell) return undefined;
    const [sleeper] = this.sleepers.values();
    return sleeper?.slots.isShared ? undefined : sleeper;
  }

  /** Sleeps with the next exchange of this queue waiting at its doorbell. After the answer the queue must join again. */
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

  /** If one queue sleeps and its exchange can now wait at the doorbell, ends the blocking call, so that the next one is that exchange. */
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

  /** Looks at the queues if no doorbell rang and the sleep lasted to its end. */
  private async lookSince(began: number): Promise<void> {
    if (this.stopped || performance.now() - began < this.maxBlockMs - 1) return;
    const asked = [...this.sleepers.values()];
    if (asked.length === 0) return;
    const looks = new Map((await this.engine.look(asked)).map((look) => [look.queue, look]));
    for (const { queue } of asked) this.sleepers.get(queue)?.looked(looks.get(queue) ?? { ...QUIET, queue });
  }

  /**
   * Wakes the queue whose doorbell rang. If all its slots are taken, the ring goes to another worker. The full queue then no
   * longer listens, until it has no work again. Otherwise it would receive the ring that it passes on again and again.
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
