import { isDeepStrictEqual } from 'node:util';
import { Log } from '../contract/log.js';
import { Trouble } from '../contract/trouble.js';
import type { QueueEngine } from '../contract/engine.js';
import type { LimitRule } from '../contract/limit-verbs.js';
import { nextTryDelay } from '../contract/retry.js';
import { NotRunningError } from '../errors.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';

/**
 * Writes the limits from the code of this process before its workers claim. Limits that the code no longer has are removed.
 * Limits that were set at run time stay. A process that only adds jobs writes the limits that no worker has written, and removes
 * none. When Redis has lost its data, a worker process does the same for all its queues. If Redis is unreachable or refuses, the
 * declarer tries again in the background.
 */
export class LimitsDeclarer {
  private readonly logger = new Log('QueueModule');
  private readonly timers = new Set<NodeJS.Timeout>();
  private stopped = false;

  constructor(private readonly engine: Pick<QueueEngine, 'limits'>) {}

  /** Resolves when it has tried each of these queues once. Never rejects. */
  async start(queues: readonly ResolvedQueueOptions[]): Promise<void> {
    await Promise.all(queues.map((queue) => this.declare(queue, true, 1)));
  }

  /** Writes the limits of these queues that Redis does not have: this process only adds jobs to them, or Redis has lost its data. */
  async writeMissing(queues: readonly ResolvedQueueOptions[]): Promise<void> {
    const limited = queues.filter(({ limits }) => limits && limits.rules.size + limits.shared.size > 0);
    await Promise.all(limited.map((queue) => this.declare(queue, false, 1)));
  }

  stop(): void {
    this.stopped = true;
    for (const timer of this.timers) clearTimeout(timer);
  }

  private async declare(
    queue: ResolvedQueueOptions,
    works: boolean,
    tries: number,
    trouble = this.troubleOf(queue.name),
  ): Promise<void> {
    try {
      await this.write(queue, works);
      trouble.ended();
    } catch (error) {
      if (this.stopped || error instanceof NotRunningError) return;
      // Without them, jobs start that a limit should hold back. So it tries again until Redis accepts them.
      trouble.failed(error as Error);
      const timer = setTimeout(
        () => {
          this.timers.delete(timer);
          void this.declare(queue, works, tries + 1, trouble);
        },
        nextTryDelay(error, tries),
      );
      this.timers.add(timer);
    }
  }

  private troubleOf(queue: string): Trouble {
    const fails = `queue '${queue}': its limits could not be written`;
    return new Trouble(this.logger, fails, `queue '${queue}': its limits are written`);
  }

  private async write(options: ResolvedQueueOptions, works: boolean): Promise<void> {
    const { name, limits } = options;
    const rules = limits?.rules ?? new Map();
    const there = await this.engine.limits.list(name);
    for (const { field, code } of there) {
      if (works && code !== null && !rules.has(field))
        await this.engine.limits.set(name, field, 'code', null);
    }
    for (const [field, rule] of rules) {
      const known = there.find((one) => one.field === field)?.code ?? null;
      if (works ? !isDeepStrictEqual(known, rule) : known === null)
        await this.engine.limits.set(name, field, 'code', rule);
    }
    if (limits && limits.shared.size > 0) await this.writeShared(name, limits.shared, works);
  }

  /** Shared limits that this application does not name belong to other applications. */
  private async writeShared(
    queue: string,
    shared: ReadonlyMap<string, LimitRule>,
    works: boolean,
  ): Promise<void> {
    const there = await this.engine.limits.shared(queue);
    for (const [limit, rule] of shared) {
      const field = `s:${limit}`;
      const known = there.find((one) => one.field === field)?.code ?? null;
      if (works ? !isDeepStrictEqual(known, rule) : known === null)
        await this.engine.limits.set(queue, field, 'code', rule);
    }
  }
}
