import type { QueueEngine, QueueLook } from '../engine/engine.js';
import { pause, repeatDelay, within } from '../engine/waiting.js';

/** How long a call that nothing interrupts is waited for at the end; closing the engine ends it. */
const FAREWELL_MS = 1000;
/** Longest sleep: after it the lists themselves are asked, whatever the bells said. */
export const MAX_BLOCK_MS = 5000;

/** A queue of which a look has nothing to tell. */
const QUIET = { work: false, dueInMs: null, leaseInMs: null, scheduleInMs: null };

/** A pool that has found its line empty and has slots left. */
export interface Sleeper {
  readonly queue: string;
  readonly worker: string;
  /** Ask the line. Answers whether it will: a pool whose slots are full does not. */
  wake(): boolean;
  /** What a look at the queue has found. */
  looked(look: QueueLook): void;
}

/**
 * All idle pools of the process sleep in one blocking call on one connection. A bell wakes one of them; a pool that falls
 * asleep meanwhile interrupts the block to be listened for too.
 */
export class Doorbell {
  private readonly sleepers = new Map<string, Sleeper>();
  private listened: ReadonlySet<string> = new Set();
  private blocking = false;
  private stopped = false;
  private running: Promise<void> | null = null;
  private signal: (() => void) | null = null;

  constructor(
    private readonly engine: QueueEngine,
    private readonly maxBlockMs = MAX_BLOCK_MS,
  ) {}

  join(sleeper: Sleeper): void {
    if (this.stopped) return;
    this.sleepers.set(sleeper.queue, sleeper);
    this.running ??= this.loop();
    if (this.blocking) {
      if (!this.listened.has(sleeper.queue)) {
        this.blocking = false;
        this.engine.interruptBell();
      }
    } else {
      this.signal?.();
    }
  }

  leave(sleeper: Sleeper): void {
    this.sleepers.delete(sleeper.queue);
  }

  /** The sleeper was woken and will not ask: another one is to. */
  passOn(sleeper: Sleeper): void {
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
      this.sleepers.clear();
      this.signal?.();
      if (this.blocking) this.engine.interruptBell();
    }
    if (this.running) await within(FAREWELL_MS, this.running);
  }

  private async loop(): Promise<void> {
    let failures = 0;
    while (!this.stopped) {
      if (this.sleepers.size === 0) {
        await this.someoneJoins();
        continue;
      }
      try {
        await this.sleep();
        failures = 0;
      } catch (error) {
        // The link says what happened; here it only means that bells may have been missed.
        this.blocking = false;
        if (this.stopped) return;
        await pause(repeatDelay(error, ++failures));
        this.wakeAll(this.sleepers.keys());
      }
    }
  }

  private async sleep(): Promise<void> {
    const queues = [...this.sleepers.keys()];
    this.listened = new Set(queues);
    this.blocking = true;
    const began = performance.now();
    const rung = await this.engine.awaitBell(queues, this.maxBlockMs);
    this.blocking = false;
    if (this.stopped) {
      if (rung !== null) await this.engine.ring(rung);
    } else if (rung !== null) {
      await this.rang(rung);
    } else if (performance.now() - began >= this.maxBlockMs - 1) {
      const asked = [...this.sleepers.values()];
      const looks = new Map((await this.engine.look(asked)).map((look) => [look.queue, look]));
      for (const { queue } of asked)
        this.sleepers.get(queue)?.looked(looks.get(queue) ?? { ...QUIET, queue });
    }
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

  private wakeAll(queues: Iterable<string>): void {
    for (const queue of queues) this.sleepers.get(queue)?.wake();
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
