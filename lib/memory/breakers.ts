import type { BreakerState, LimitField, RunReport } from '../contract/limit-verbs.js';
import type { BreakerRule, RetryBudgetRule } from '../job/limit-rule.js';
import { isOpen, type LimitUse } from './rates.js';

/** How many runs completed and failed in a tenth of a window. */
interface Tenth {
  readonly tenth: number;
  completed: number;
  failed: number;
}

/** The change of a breaker, and the state of its limit afterwards. */
interface Change {
  readonly kind: 'opened' | 'tried' | 'closed';
  readonly use: LimitUse;
}

/** Counts of closed breakers, and the times of the next retries by retry budgets. Like `shared/breakers.lua`. */
export class BreakerBook {
  private readonly counts = new Map<LimitField, Tenth[]>();
  private readonly firsts = new Map<LimitField, Tenth[]>();
  /** From when a retry budget allows the next retry, and when that was written. */
  private readonly due = new Map<LimitField, { readonly from: number; readonly at: number }>();

  clear(): void {
    this.counts.clear();
    this.firsts.clear();
    this.due.clear();
  }

  /** Null if the breaker does not change. */
  report(
    { field, completed, failed, closes = false }: RunReport,
    breaker: BreakerRule,
    use: LimitUse,
    now: number,
  ): Change | null {
    const till = now + breaker.openFor;
    if (closes) return use.mark === '' ? null : { kind: 'closed', use: { ...use, mark: '' } };
    if (use.mark === '') {
      const counted = countRuns(this.counts, field, breaker.window, now, { completed, failed });
      const all = counted.completed + counted.failed;
      if (counted.failed < breaker.failures || counted.failed < breaker.ratio * all) return null;
      this.counts.delete(field);
      return { kind: 'opened', use: { ...use, mark: '!', till } };
    }
    if (use.mark !== '?') return null;
    if (failed > 0) return { kind: 'tried', use: { ...use, mark: '!', till } };
    return completed > 0 ? { kind: 'closed', use: { ...use, mark: '' } } : null;
  }

  /** By how many ms a budget would delay a retry now. */
  delayOf(field: LimitField, { max, per }: RetryBudgetRule, now: number): number {
    return Math.max(0, Math.ceil(this.dueFrom(field, now) + per / max - per - now));
  }

  /** If the clock was set back since it was written, that time is too late by as much. */
  private dueFrom(field: LimitField, now: number): number {
    const { from, at } = this.due.get(field) ?? { from: 0, at: 0 };
    return from - Math.max(0, at - now);
  }

  /** Assigns times to retries. Each first attempt makes the next retry possible earlier, by its percentage of a retry. */
  book({ field, retries, firsts }: RunReport, { max, per, percent }: RetryBudgetRule, now: number) {
    const eachMs = per / max;
    let [from, earned] = [this.dueFrom(field, now), 0];
    if (percent !== undefined) {
      from -= (firsts * eachMs * percent) / 100;
      const counted = countRuns(this.firsts, field, per, now, { completed: firsts, failed: 0 });
      earned = (counted.completed * eachMs * percent) / 100;
    }
    from = Math.max(now - earned, from);
    this.due.set(field, { from: from + retries * eachMs, at: now });
    return { firstMs: from + eachMs - per - now, eachMs };
  }
}

/** Counts runs by tenths of a window. Returns how many completed and failed in that window. */
function countRuns(
  counts: Map<LimitField, Tenth[]>,
  field: LimitField,
  window: number,
  now: number,
  { completed, failed }: Pick<Tenth, 'completed' | 'failed'>,
): Pick<Tenth, 'completed' | 'failed'> {
  const current = Math.floor(now / (window / 10));
  const kept = (counts.get(field) ?? []).filter(({ tenth }) => tenth > current - 10 && tenth <= current);
  if (kept.at(-1)?.tenth !== current) kept.push({ tenth: current, completed: 0, failed: 0 });
  const last = kept.at(-1)!;
  last.completed += completed;
  last.failed += failed;
  counts.set(field, kept);
  return {
    completed: kept.reduce((sum, one) => sum + one.completed, 0),
    failed: kept.reduce((sum, one) => sum + one.failed, 0),
  };
}

export function stateOfBreaker(breaker: BreakerRule, { mark, till }: LimitUse, now: number): BreakerState {
  if (mark === '') return 'closed';
  return mark === '!' && isOpen(breaker, till, now) ? 'open' : 'half-open';
}
