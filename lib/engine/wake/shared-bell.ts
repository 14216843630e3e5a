import { randomBytes } from 'node:crypto';
import { privateBell } from '../keys.js';
import type { QueueLinks } from '../wire/queue-links.js';
import type { RedisStore } from '../redis-store.js';
import type { Arg } from '../wire/fixed-args.js';
import { BLOCK_MARGIN_MS } from '../../contract/retry.js';

/** A private bell that nobody hears any more goes by itself. */
const PRIVATE_BELL_MS = 10_000;

/** How a wait with a script call behind it ended. */
export interface RungCall {
  /** What the bell told; null where it did not ring, or nobody knows. */
  readonly member: string | null;
  /** What the script answered, or how it failed. */
  readonly reply: unknown;
}

/** One blocking call on one connection for all idle queues of the process, and for a private bell that ends it. */
export class SharedBell {
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
   * The same for one queue, with a script call behind it on the same connection: Redis makes it the moment the wait is over. Null
   * while there is no connection.
   */
  awaitAndCall(queue: string, call: [name: string, args: Arg[]], maxMs: number): Promise<RungCall> | null {
    const link = this.links.of(queue);
    if (!link.isUp) return null;
    const { doorbell } = this.store.keysOf(queue).fixed;
    const silentMs = maxMs + BLOCK_MARGIN_MS;
    const bells = [doorbell, this.own, Math.max(0.001, maxMs / 1000)];
    // Where it cannot be waited for, the call has been made all the same, and its answer counts.
    const rung = link.write('awaitBell', 'bzpopmin', bells, silentMs).then(
      (answer: [string, string, string] | null) => (answer?.[0] === doorbell ? answer[1] : null),
      () => null,
    );
    const made = link.write('claimAtBell', ...call, silentMs).catch((error: Error) => error);
    return Promise.all([rung, made]).then(([member, reply]) => ({ member, reply }));
  }

  interrupt(): void {
    const { commands, callMs } = this.store;
    // Both may fail where Redis is away; then the block has ended too.
    commands.write('interruptBell', 'zadd', [this.own, 0, 'up'], callMs).catch(() => undefined);
    commands.write('interruptBell', 'pexpire', [this.own, PRIVATE_BELL_MS], callMs).catch(() => undefined);
  }

  async close(): Promise<void> {
    if (!this.store.commands.isUp) return;
    await this.store.command('close', 'unlink', [this.own]).catch(() => undefined);
  }
}
