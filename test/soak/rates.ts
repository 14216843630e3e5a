import type { RateOptions } from '#lib/options/limit-options.js';

/** How many jobs the rate lets start at most in any time as long as `per`. */
function mostOf({ max, window }: RateOptions): number {
  // A fixed window may be full at its end, and the next at its start; so may a bucket be full, and refilled meanwhile.
  return window === 'sliding' ? max : 2 * max;
}

/**
 * Returns a time in which more jobs were claimed than the rate allows. Costs are left out: they are counted after the claim, so one
 * batch may exceed the rate. Each is at least 1, so the number of claims is never above it.
 */
export function faultOfRate(name: string, rate: RateOptions, claimedAt: readonly number[]): string | null {
  const sorted = claimedAt.toSorted((a, b) => a - b);
  const most = mostOf(rate);
  const per = Number(rate.per);
  for (let last = most; last < sorted.length; last++) {
    const ms = sorted[last]! - sorted[last - most]!;
    // Times are whole ms, and those of two claims may both be rounded.
    if (ms < per - 1) return `${most + 1} claims within ${ms} ms, ${most} in ${per} are allowed: ${name}`;
  }
  return null;
}
