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
  delayOf(field: LimitField, budget: RetryBudgetRule, now: number): number {
    const { completed } = sumOf(runsIn(this.firsts.get(field), budget.per, now));
    const { whole, wait } = nextRetry(budget, now, this.budgetIn(field, budget, now, 0, completed));
    return whole > 0 ? 0 : Math.ceil(wait);
  }

  /** If the clock was set back since it was written, that time is too late by as much. */
  private dueFrom(field: LimitField, now: number): number {
    const { from, at } = this.due.get(field) ?? { from: 0, at: 0 };
    return from - Math.max(0, at - now);
  }

  /** Assigns times to retries, as precise as the answer of the script. */
  places(report: RunReport, budget: RetryBudgetRule, now: number) {
    const { firstMs, eachMs } = this.book(report, budget, now);
    return { firstMs: Number(firstMs.toFixed(3)), eachMs: Number(eachMs.toFixed(3)) };
  }

  /** The same, with all digits. */
  book({ field, retries, firsts }: RunReport, budget: RetryBudgetRule, now: number) {
    const counted =
      budget.percent === undefined
        ? 0
        : countRuns(this.firsts, field, budget.per, now, { completed: firsts, failed: 0 }).completed;
    const next = this.budgetIn(field, budget, now, firsts, counted);
    const { whole, wait } = nextRetry(budget, now, next);
    const { from, each, late } = next;
    const after =
      retries > whole
        ? now + budget.per + wait + (retries - whole - 1) * late
        : from + retries * (from < now + budget.per ? each : late);
    this.due.set(field, { from: Number(after.toFixed(3)), at: now });
    return { firstMs: wait - whole * late, eachMs: late };
  }

  /**
   * `firsts` of the `counted` first attempts of the last `per` are new. Each allows its percentage of a retry, which is still allowed
   * while they are younger than `per`. But if retries wait, their times already count on as many first attempts as in the last `per`.
   */
  private budgetIn(
    field: LimitField,
    { max, per, percent = 0 }: RetryBudgetRule,
    now: number,
    firsts: number,
    counted: number,
  ): NextRetry {
    const each = per / max;
    const share = percent / 100;
    const earned = counted * share;
    let from = this.dueFrom(field, now);
    if (from < now + per) from -= firsts * share * each;
    return { from: Math.max(now - earned * each, from), each, late: per / (max + earned) };
  }
}

/** From when a budget allows the next retry, and the ms of a retry by `max` alone, and by the percentage too. */
interface NextRetry {
  readonly from: number;
  readonly each: number;
  readonly late: number;
}

/** How many retries may run at once, and in how many ms the one after them. */
function nextRetry({ per }: RetryBudgetRule, now: number, { from, each, late }: NextRetry) {
  const ready = (now + per - from) / each;
  if (ready < 0) return { whole: 0, wait: from - per - now + late };
  const whole = Math.floor(ready);
  return { whole, wait: (1 - ready + whole) * late };
}

/** The tenths that still belong to the window. */
function runsIn(tenths: readonly Tenth[] = [], window: number, now: number): Tenth[] {
  const current = Math.floor(now / (window / 10));
  return tenths.filter(({ tenth }) => tenth > current - 10 && tenth <= current);
}

function sumOf(tenths: readonly Tenth[]): Pick<Tenth, 'completed' | 'failed'> {
  return {
    completed: tenths.reduce((sum, one) => sum + one.completed, 0),
    failed: tenths.reduce((sum, one) => sum + one.failed, 0),
  };
}

/** Counts runs. Returns how many completed and failed in the window. */
function countRuns(
  counts: Map<LimitField, Tenth[]>,
  field: LimitField,
  window: number,
  now: number,
  { completed, failed }: Pick<Tenth, 'completed' | 'failed'>,
): Pick<Tenth, 'completed' | 'failed'> {
  const current = Math.floor(now / (window / 10));
  const kept = runsIn(counts.get(field), window, now);
  if (kept.at(-1)?.tenth !== current) kept.push({ tenth: current, completed: 0, failed: 0 });
  const last = kept.at(-1)!;
  last.completed += completed;
  last.failed += failed;
  counts.set(field, kept);
  return sumOf(kept);
}

export function stateOfBreaker(breaker: BreakerRule, { mark, till }: LimitUse, now: number): BreakerState {
  if (mark === '') return 'closed';
  return mark === '!' && isOpen(breaker, till, now) ? 'open' : 'half-open';
}
