import type { BreakerState, LimitField, RunReport } from '../contract/limit-verbs.js';
import type { BreakerRule, RetryBudgetRule } from '../job/limit-rule.js';
import type { LimitUse } from './rates.js';

/** How many runs completed and failed in a tenth of the window of a breaker. */
interface Tenth {
  readonly tenth: number;
  completed: number;
  failed: number;
}

/** What a breaker did, and the state of its limit afterwards. */
interface Change {
  readonly kind: 'opened' | 'tried' | 'closed';
  readonly use: LimitUse;
}

/** Counts of closed breakers, and the times of the next retries by retry budgets. Like `shared/breakers.lua`. */
export class BreakerBook {
  private readonly counts = new Map<LimitField, Tenth[]>();
  private readonly due = new Map<LimitField, number>();

  clear(): void {
    this.counts.clear();
    this.due.clear();
  }

  /** Null if the breaker does not change. */
  report(
    { field, completed, failed }: RunReport,
    breaker: BreakerRule,
    use: LimitUse,
    now: number,
  ): Change | null {
    const till = now + breaker.openFor;
    if (use.mark === '') {
      if (!this.mustOpen(field, breaker, now, completed, failed)) return null;
      this.counts.delete(field);
      return { kind: 'opened', use: { ...use, mark: '!', till } };
    }
    if (use.mark !== '?') return null;
    if (failed > 0) return { kind: 'tried', use: { ...use, mark: '!', till } };
    return completed > 0 ? { kind: 'closed', use: { ...use, mark: '' } } : null;
  }

  private mustOpen(
    field: LimitField,
    breaker: BreakerRule,
    now: number,
    completed: number,
    failed: number,
  ): boolean {
    const current = Math.floor(now / (breaker.window / 10));
    const kept = (this.counts.get(field) ?? []).filter(
      ({ tenth }) => tenth > current - 10 && tenth <= current,
    );
    if (kept.at(-1)?.tenth !== current) kept.push({ tenth: current, completed: 0, failed: 0 });
    const last = kept.at(-1)!;
    last.completed += completed;
    last.failed += failed;
    this.counts.set(field, kept);
    const allFailed = kept.reduce((sum, one) => sum + one.failed, 0);
    const all = kept.reduce((sum, one) => sum + one.completed, allFailed);
    return allFailed >= breaker.failures && allFailed >= breaker.ratio * all;
  }

  /** Assigns times to this many retries. */
  book(field: LimitField, { max, per }: RetryBudgetRule, now: number, count: number) {
    const eachMs = per / max;
    const from = Math.max(now, this.due.get(field) ?? 0);
    this.due.set(field, from + count * eachMs);
    return { firstMs: from + eachMs - per - now, eachMs };
  }
}

export function stateOfBreaker({ mark, till }: LimitUse, now: number): BreakerState {
  if (mark === '') return 'closed';
  return mark === '!' && till > now ? 'open' : 'half-open';
}
