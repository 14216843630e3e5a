import { randomBytes } from 'node:crypto';
import { RedisRefusedError } from '../../errors.js';
import { type QueueKeyName, privateBell } from '../keys.js';
import type { QueueLinks } from '../wire/connections.js';
import type { RedisStore } from '../redis-store.js';
import type { Arg } from '../wire/fixed-args.js';
import { BLOCK_MARGIN_MS, CLEANUP_MS, within, pause, repeatDelay } from '../../contract/retry.js';

/** Waits for the doorbells of several queues at once. */
interface Listening {
  await(queues: readonly string[], maxMs: number): Promise<string | null>;
  awaitAndCall?(queue: string, call: [name: string, args: Arg[]], maxMs: number): Promise<RungCall> | null;
  interrupt(): void;
  close(): Promise<void>;
}

/**
 * Doorbells. A ring is only a hint: a woken worker checks the queue itself. Workers that were not woken for a while check too
 * (`IdlePoller`).
 */
export class Bells {
  private chosen: Listening | undefined;

  constructor(
    private readonly prefix: string,
    private readonly store: RedisStore,
    private readonly links: QueueLinks,
  ) {}

  await(queues: readonly string[], maxMs: number): Promise<string | null> {
    return this.listening().await(queues, maxMs);
  }

  /** Like `await`, followed by a script call that Redis runs as soon as the wait ends. Null if that is not possible now. */
  awaitAndCall(queue: string, call: [name: string, args: Arg[]], maxMs: number): Promise<RungCall> | null {
    return this.listening().awaitAndCall?.(queue, call, maxMs) ?? null;
  }

  interrupt(): void {
    this.chosen?.interrupt();
  }

  async ring(queue: string): Promise<void> {
    await this.store.command('ring', 'zadd', [this.store.keysOf(queue).fixed.doorbell, 0, 'work']);
  }

  /** Whether each queue needs a separate call, as on Redis Cluster. */
  get perQueue(): boolean {
    return this.links.perQueue;
  }

  /** The queues for which one of these keys exists. */
  async anyOf(queues: readonly string[], names: readonly QueueKeyName[]): Promise<readonly string[]> {
    if (queues.length === 0) return [];
    const keys = queues.map((queue) => names.map((name) => this.store.keysOf(queue).fixed[name]));
    if (!this.links.perQueue) {
      // If nothing exists, one command finds that out for any number of queues.
      if ((await this.exists(keys.flat())) === 0) return [];
      if (queues.length === 1) return queues;
    }
    // A queue whose master does not answer counts as found, so it is checked. The other queues do not wait for it.
    const found = await Promise.all(
      keys.map((group) => (this.links.perQueue ? this.exists(group).catch(() => 1) : this.exists(group))),
    );
    return queues.filter((_, i) => found[i]! > 0);
  }

  private exists(keys: string[]): Promise<number> {
    return this.store.command('anyOf', 'exists', keys) as Promise<number>;
  }

  async close(): Promise<void> {
    await this.chosen?.close();
    await this.links.close();
  }

  private listening(): Listening {
    this.chosen ??= this.links.perQueue
      ? new BellPerQueue(this.store, this.links, (queue) => this.ring(queue))
      : new SharedBell(this.prefix, this.store, this.links);
    return this.chosen;
  }
}

/** One call of `await`. */
export interface Listener {
  readonly queues: ReadonlySet<string>;
  readonly done: (queue: string | null) => void;
}

/**
 * On Redis Cluster one call cannot wait for the doorbells of different queues, so each queue has its own blocking call. The call
 * continues after its listener has ended, and serves the next one. If a doorbell rings and nobody listens for its queue any more,
 * it is rung again for another process.
 */
class BellPerQueue {
  private readonly calls = new Set<string>();
  private readonly failures = new Map<string, number>();
  private readonly listeners = new Set<Listener>();
  private closed = false;

  constructor(
    private readonly store: RedisStore,
    private readonly links: QueueLinks,
    private readonly ring: (queue: string) => Promise<void>,
  ) {}

  await(queues: readonly string[], maxMs: number): Promise<string | null> {
    return new Promise((resolve) => {
      const listener: Listener = {
        queues: new Set(queues),
        done: (queue) => {
          clearTimeout(timer);
          this.listeners.delete(listener);
          resolve(queue);
        },
      };
      const timer = setTimeout(() => listener.done(null), maxMs);
      this.listeners.add(listener);
      for (const queue of queues) if (!this.calls.has(queue)) void this.call(queue, maxMs);
    });
  }

  interrupt(): void {
    for (const { done } of this.listeners) done(null);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.interrupt();
  }

  private async call(queue: string, maxMs: number): Promise<void> {
    this.calls.add(queue);
    const heard = await this.block(queue, maxMs);
    this.calls.delete(queue);
    const listener = [...this.listeners].find(({ queues }) => queues.has(queue));
    if (heard === 'nothing') {
      if (listener) void this.call(queue, maxMs);
    } else if (listener) {
      // If the doorbell cannot be read, the listener must check the queue itself.
      listener.done(queue);
    } else if (heard === 'bell') {
      // If this fails, the next listener checks the queue after a while.
      await this.ring(queue).catch(() => undefined);
    }
  }

  private async block(queue: string, maxMs: number): Promise<'bell' | 'nothing' | 'deaf'> {
    const { doorbell } = this.store.keysOf(queue).fixed;
    const seconds = Math.max(0.001, maxMs / 1000);
    try {
      const link = this.links.of(queue);
      const rung = await link.send('awaitBell', 'bzpopmin', [doorbell, seconds], maxMs + BLOCK_MARGIN_MS);
      this.failures.delete(queue);
      return rung === null ? 'nothing' : 'bell';
    } catch (error) {
      if (this.closed) return 'nothing';
      const failures = (this.failures.get(queue) ?? 0) + 1;
      this.failures.set(queue, failures);
      await pause(repeatDelay(error, failures));
      return 'deaf';
    }
  }
}

/** Expiry of the private doorbell after its last use. */
const PRIVATE_BELL_MS = 10_000;

/** The result of a wait that is followed by a script call. */
export interface RungCall {
  /** The member popped from the doorbell. Null if it did not ring or if the answer was lost. */
  readonly member: string | null;
  /** The error, if the server refused to wait. */
  readonly refusal?: Error;
  /** The reply of the script, or its error. */
  readonly reply: unknown;
}

/** One blocking call for the doorbells of all idle queues of the process, and for a private doorbell that interrupts it. */
class SharedBell {
  private readonly own: string;

  constructor(
    prefix: string,
    private readonly store: RedisStore,
    private readonly links: QueueLinks,
  ) {
    this.own = privateBell(prefix, randomBytes(6).toString('hex'));
  }

  async await(queues: readonly string[], maxMs: number): Promise<string | null> {
    const bells = queues.map((queue) => this.store.keysOf(queue).fixed.doorbell);
    const seconds = Math.max(0.001, maxMs / 1000);
    const rung = (await this.links
      .of(queues[0]!)
      .send('awaitBell', 'bzpopmin', [...bells, this.own, seconds], maxMs + BLOCK_MARGIN_MS)) as
      [string, string, string] | null;
    return rung === null || rung[0] === this.own ? null : (queues[bells.indexOf(rung[0])] ?? null);
  }

  /**
   * Like `await`, for one queue, followed by a script call on the same connection. Redis runs the script as soon as the wait
   * ends. Null while there is no connection.
   */
  awaitAndCall(queue: string, call: [name: string, args: Arg[]], maxMs: number): Promise<RungCall> | null {
    const link = this.links.of(queue);
    if (!link.isUp) return null;
    const { doorbell } = this.store.keysOf(queue).fixed;
    const silentMs = maxMs + BLOCK_MARGIN_MS;
    const bells = [doorbell, this.own, Math.max(0.001, maxMs / 1000)];
    // If the wait is refused, the script still runs, and its answer counts.
    const rung = link.write('awaitBell', 'bzpopmin', bells, silentMs).then(
      (answer: [string, string, string] | null) => ({ member: answer?.[0] === doorbell ? answer[1] : null }),
      (error: unknown) => ({ member: null, ...(error instanceof RedisRefusedError && { refusal: error }) }),
    );
    const made = link.write('claimAtBell', ...call, silentMs).catch((error: Error) => error);
    return Promise.all([rung, made]).then(([waited, reply]) => ({ ...waited, reply }));
  }

  interrupt(): void {
    const { commands, callMs } = this.store;
    // Both calls may fail if Redis is unreachable. Then the blocking call has ended too.
    commands.write('interruptBell', 'zadd', [this.own, 0, 'up'], callMs).catch(() => undefined);
    commands.write('interruptBell', 'pexpire', [this.own, PRIVATE_BELL_MS], callMs).catch(() => undefined);
  }

  async close(): Promise<void> {
    const { commands, callMs } = this.store;
    if (commands.isUp) await within(CLEANUP_MS, commands.send('close', 'unlink', [this.own], callMs));
  }
}
