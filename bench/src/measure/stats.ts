/** The value below which the share `q` of the values lies, between neighbours linearly. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const below = sorted[Math.floor(at)]!;
  const above = sorted[Math.ceil(at)]!;
  return below + (above - below) * (at - Math.floor(at));
}

export interface Summary {
  /** How many values it sums up. */
  readonly count: number;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** Half the range as a share of the median. */
  readonly spread: number;
}

export function summarize(values: readonly number[]): Summary {
  const median = quantile(values, 0.5);
  const min = Math.min(...values);
  const max = Math.max(...values);
  return { count: values.length, median, min, max, spread: median === 0 ? 0 : (max - min) / 2 / median };
}
