import type { RateOptions } from '#lib/options/limit-options.js';

/** How many jobs the rate lets start at most in any time as long as `per`, if a start is claimed up to `lateMs` after it was counted. */
function mostOf({ max, per, window }: RateOptions, lateMs: number): number {
  const windows = Math.ceil(1 + lateMs / Number(per));
  // A fixed window may be full at its end, and the next at its start; so may a bucket be full, and refilled meanwhile.
  return max * (window === 'sliding' ? windows : windows + 1);
}

/**
 * Returns a time in which more jobs were claimed than the rate allows. Costs are left out: they are counted after the claim, so one
 * batch may exceed the rate. Each is at least 1, so the number of claims is never above it.
 */
export function faultOfRate(
  name: string,
  rate: RateOptions,
  claimedAt: readonly number[],
  lateMs: number,
): string | null {
  const sorted = claimedAt.toSorted((a, b) => a - b);
  const most = mostOf(rate, lateMs);
  const per = Number(rate.per);
  for (let last = most; last < sorted.length; last++) {
    const ms = sorted[last]! - sorted[last - most]!;
    // Times are whole ms, and those of two claims may both be rounded.
    if (ms < per - 1) return `${most + 1} claims within ${ms} ms, ${most} in ${per} are allowed: ${name}`;
  }
  return null;
}
