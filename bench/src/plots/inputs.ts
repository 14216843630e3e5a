import type { GrowthResult } from '../growth/result.js';
import type { Result } from '../report/result.js';

export interface Inputs {
  /** Absent where nobody has measured it. */
  readonly comparison?: Result;
  readonly growths: readonly GrowthResult[];
}

/** The newest run that compares systems, and of each growth the newest. */
export function newest(results: readonly Result[]): Inputs {
  const latestFirst = results.toSorted((a, b) => b.startedAt.localeCompare(a.startedAt));
  const growths = new Map<string, GrowthResult>();
  for (const one of latestFirst.filter(isGrowth)) {
    if (!growths.has(one.growth.name)) growths.set(one.growth.name, one);
  }
  const comparison = latestFirst.find((one) => !isGrowth(one) && Object.keys(one.terms).length > 1);
  return {
    ...(comparison && { comparison }),
    growths: [...growths.values()].toSorted((a, b) => a.growth.name.localeCompare(b.growth.name)),
  };
}

function isGrowth(result: Result): result is GrowthResult {
  return 'growth' in result;
}
