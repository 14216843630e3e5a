import { valueAt } from '../measure/fit.js';
import type { Curve, GrowthResult } from '../growth/result.js';
import { short } from '../report/words.js';
import { unitWords } from './comparison.js';
import type { CurvePanel, PlottedCurve } from './panels.js';

/** A panel per figure. */
export function curvePanels(
  { growth, curves }: Pick<GrowthResult, 'growth' | 'curves'>,
  own: string,
): CurvePanel[] {
  const keys = [...new Set(curves.map(({ figure }) => figure.key))];
  return keys.map((key) => {
    const mine = curves.filter(({ figure }) => figure.key === key);
    const { title, unit, better } = mine[0]!.figure;
    return {
      title: title.charAt(0).toUpperCase() + title.slice(1),
      subtitle: `${unitWords(unit)}${unit === '' ? '' : ', '}${better} is better`,
      xTitle: growth.axis.title,
      ...(growth.axis.unit && { xUnit: growth.axis.unit }),
      xBase: growth.axis.base,
      curves: mine.map((curve) => plotted(curve, own)),
    };
  });
}

function plotted({ contender, points, fit }: Curve, own: string): PlottedCurve {
  const dots = points.map(({ size, summary }) => ({ x: size, y: summary.median })).filter(({ y }) => y > 0);
  const [first, last] = [dots[0], dots.at(-1)];
  return {
    name: contender,
    own: contender === own,
    points: dots,
    ...(fit &&
      first &&
      last && {
        fitted: [
          { x: first.x, y: valueAt(fit, first.x) },
          { x: last.x, y: valueAt(fit, last.x) },
        ] as const,
      }),
    label: fit === undefined ? contender : `${contender}, slope ${short(fit.exponent)}`,
  };
}
