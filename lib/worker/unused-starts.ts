import type { LimitCharge, LimitField } from '../contract/limit-verbs.js';

/**
 * Takes back the starts that limits have counted for jobs whose handler was not called. One call takes back those of all jobs that
 * one answer brought.
 */
export class UnusedStarts {
  private counts = new Map<LimitField, number>();

  constructor(
    private readonly charge: (changes: readonly LimitCharge[]) => Promise<void>,
    /** Whether a handler runs. It may be that of a probe. */
    private readonly isBusy: () => boolean,
  ) {}

  add(fields: readonly LimitField[], cost: number): void {
    if (this.counts.size === 0) queueMicrotask(() => this.send());
    for (const field of fields) this.counts.set(field, (this.counts.get(field) ?? 0) + cost);
  }

  private send(): void {
    const probesAgain = !this.isBusy();
    const changes = [...this.counts].map(([field, count]) => ({
      field,
      holdMs: 0,
      count: -count,
      probesAgain,
    }));
    this.counts = new Map();
    // Not awaited: if this call fails, fewer jobs start for a while.
    this.charge(changes).catch(() => undefined);
  }
}
