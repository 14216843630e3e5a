import { changeOver, fitPower, type Fit } from '../measure/fit.js';
import type { Summary } from '../measure/stats.js';
import type { Sample } from '../run/runner.js';
import type { Figure } from '../scenario.js';
import { rowsOf, type Result } from '../report/result.js';
import type { Contender } from '../contender.js';
import { scenarioAt, type Growth } from './growth.js';

/** A run of one growth, in the form of `bench/results/growth-…json`. */
export interface GrowthResult extends Result {
  readonly growth: Pick<Growth, 'name' | 'title' | 'axis' | 'notes'>;
  readonly curves: readonly Curve[];
}

/** How one figure of one contender changes. */
export interface Curve {
  readonly figure: Figure;
  readonly contender: string;
  readonly points: readonly CurvePoint[];
  /** Missing where fewer than two sizes were measured. */
  readonly fit?: Fit;
  /** Of the fitted value from the first point to the last, as a share. */
  readonly change?: number;
  /** The bound of it, and whether it holds. */
  readonly promise?: Verdict;
}

interface CurvePoint {
  readonly size: number;
  readonly summary: Summary;
}

interface Verdict {
  readonly upTo: number;
  /** A share, as is `change`. */
  readonly worse: number;
  /** Of the fitted value from the first point to `upTo`, without the points beyond. */
  readonly change: number;
  readonly kept: boolean;
}

export function curvesOf(
  growth: Growth,
  sizes: readonly number[],
  contenders: readonly Contender[],
  samples: readonly Sample[],
): Curve[] {
  const rows = rowsOf(
    sizes.map((size) => scenarioAt(growth, size)),
    contenders,
    samples,
    // Only the figures of these rows are used.
    0,
  );
  return growth.figures.flatMap((figure) =>
    contenders.flatMap(({ name: contender }) => {
      const points = sizes.flatMap((size): CurvePoint[] => {
        const row = rows.find((r) => r.scenario === scenarioAt(growth, size).name && r.key === figure.key);
        const summary = row?.contenders[contender];
        return summary === undefined ? [] : [{ size, summary }];
      });
      if (points.length === 0) return [];
      const verdict = verdictOf(growth, figure, points);
      return [{ figure, contender, points, ...fitOf(points), ...(verdict && { promise: verdict }) }];
    }),
  );
}

function fitOf(points: readonly CurvePoint[]): Pick<Curve, 'fit' | 'change'> {
  const fit = fitPower(points.map(({ size, summary }) => ({ x: size, y: summary.median })));
  return fit === undefined ? {} : { fit, change: changeOver(fit, points[0]!.size, points.at(-1)!.size) };
}

function verdictOf(
  { promise }: Pick<Growth, 'promise'>,
  { key, better }: Figure,
  all: readonly CurvePoint[],
): Verdict | undefined {
  if (!promise?.figures.includes(key)) return undefined;
  const { upTo, worse } = promise;
  const { change } = fitOf(all.filter(({ size }) => size <= upTo));
  if (change === undefined) return undefined;
  return { upTo, worse, change, kept: (better === 'more' ? -change : change) <= worse };
}
