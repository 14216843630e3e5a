import type { RateOptions } from '#lib/options/limit-options.js';

/**
 * What the jobs that start in any time as long as `per` may cost together at most, if a start is claimed up to `lateMs` after it was
 * counted.
 */
function mostOf({ max, per, window }: RateOptions, lateMs: number): number {
  const windows = Math.ceil(1 + lateMs / Number(per));
  // A fixed window may be full at its end, and the next at its start; so may a bucket be full, and refilled meanwhile.
  return max * (window === 'sliding' ? windows : windows + 1);
}

/** A job was claimed. */
export interface Claim {
  readonly at: number;
  /** The least cost of its start. */
  readonly cost: number;
}

/** Returns a time in which claimed jobs cost more together than the rate allows. */
export function faultOfRate(
  name: string,
  rate: RateOptions,
  claims: readonly Claim[],
  lateMs: number,
): string | null {
  const sorted = claims.toSorted((a, b) => a.at - b.at);
  const most = mostOf(rate, lateMs);
  const per = Number(rate.per);
  let [first, sum] = [0, 0];
  for (const { at, cost } of sorted) {
    sum += cost;
    // Times are whole ms, and those of two claims may both be rounded.
    while (at - sorted[first]!.at >= per - 1) sum -= sorted[first++]!.cost;
    const ms = at - sorted[first]!.at;
    if (sum > most) return `claims cost ${sum} within ${ms} ms, ${most} in ${per} are allowed: ${name}`;
  }
  return null;
}
