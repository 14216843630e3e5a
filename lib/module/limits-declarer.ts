import { isDeepStrictEqual } from 'node:util';
import { Log } from '../contract/log.js';
import { Trouble } from '../contract/trouble.js';
import type { QueueEngine } from '../contract/engine.js';
import type { LimitField, LimitRule, LimitState } from '../contract/limit-verbs.js';
import { nextTryDelay } from '../contract/retry.js';
import { NotRunningError } from '../errors.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { closeBreaker } from '../producer/queue-limits.js';

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
    for (const known of there)
      if (works && known.code !== null && !rules.has(known.field)) await this.set(name, known, null);
    await this.writeRules(name, rules, there, works);
    if (limits && limits.shared.size > 0) await this.writeShared(name, limits.shared, works);
  }

  /** Shared limits that this application does not name belong to other applications. */
  private async writeShared(
    queue: string,
    shared: ReadonlyMap<string, LimitRule>,
    works: boolean,
  ): Promise<void> {
    const rules = Array.from(shared, ([limit, rule]): [LimitField, LimitRule] => [`s:${limit}`, rule]);
    await this.writeRules(queue, rules, await this.engine.limits.shared(queue), works);
  }

  private async writeRules(
    queue: string,
    rules: Iterable<readonly [LimitField, LimitRule]>,
    there: readonly LimitState[],
    works: boolean,
  ): Promise<void> {
    for (const [field, rule] of rules) {
      const known = there.find((one) => one.field === field) ?? { field, code: null, live: null };
      if (works ? !isDeepStrictEqual(known.code, rule) : known.code === null)
        await this.set(queue, known, rule);
    }
  }

  /** Without its breaker a limit holds nothing back, so an open one is closed, which writes the event. */
  private async set(
    queue: string,
    { field, code, live }: Pick<LimitState, 'field' | 'code' | 'live'>,
    rule: LimitRule | null,
  ): Promise<void> {
    if (code?.breaker && !rule?.breaker && !live?.breaker)
      await closeBreaker(this.engine, queue, field, 'is no longer in the code');
    await this.engine.limits.set(queue, field, 'code', rule);
  }
}
