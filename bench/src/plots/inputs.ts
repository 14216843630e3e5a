import type { GrowthResult } from '../growth/result.js';
import type { Result, Row } from '../report/result.js';
import { LIMIT_LINES, LINES, linesFrom } from './table.js';

interface Inputs {
  /** The data of the table and the bars; absent if nothing was measured. */
  readonly comparison?: Result;
  /** The data of the table of limits and groups; absent if nothing of it was measured. */
  readonly limits?: Result;
  /** Each scenario from the newest run that compares it, in the order of the run with most scenarios. */
  readonly everyRow: readonly Row[];
  readonly growths: readonly GrowthResult[];
}

/** The newest run that compares systems in most of each table, and the newest run of each growth. */
export function newest(results: readonly Result[]): Inputs {
  const latestFirst = results.toSorted((a, b) => b.startedAt.localeCompare(a.startedAt));
  const growths = new Map<string, GrowthResult>();
  for (const one of latestFirst.filter(isGrowth)) {
    if (!growths.has(one.growth.name)) growths.set(one.growth.name, one);
  }
  const comparisons = latestFirst.filter((one) => !isGrowth(one) && Object.keys(one.terms).length > 1);
  const [comparison] = comparisons.toSorted((a, b) => linesFrom(b.rows, LINES) - linesFrom(a.rows, LINES));
  const [limits] = comparisons
    .filter(({ rows }) => linesFrom(rows, LIMIT_LINES) > 0)
    .toSorted((a, b) => linesFrom(b.rows, LIMIT_LINES) - linesFrom(a.rows, LIMIT_LINES));
  return {
    ...(comparison && { comparison }),
    ...(limits && { limits }),
    everyRow: newestRows(comparisons),
    growths: [...growths.values()].toSorted((a, b) => a.growth.name.localeCompare(b.growth.name)),
  };
}

function newestRows(latestFirst: readonly Result[]): Row[] {
  const scenariosOf = ({ rows }: Result) => [...new Set(rows.map(({ scenario }) => scenario))];
  const longestFirst = latestFirst.map(scenariosOf).toSorted((a, b) => b.length - a.length);
  const names = [...new Set(longestFirst.flat())];
  return names.flatMap((name) => {
    const { rows } = latestFirst.find((one) => scenariosOf(one).includes(name))!;
    return rows.filter(({ scenario }) => scenario === name);
  });
}

function isGrowth(result: Result): result is GrowthResult {
  return 'growth' in result;
}
