import Table from 'cli-table3';
import { failuresOf, number, terms, whereOf } from '../report/text.js';
import { short, signedPercent, sizeLabel } from '../report/words.js';
import type { Curve, GrowthResult } from './result.js';

/** A growth as plain text: a table with a column per size, how it was taken, and where. */
export function renderGrowth(result: GrowthResult, sizes: readonly number[]): string {
  const { growth, curves, samples, rounds, jobs, surroundings, startedAt } = result;
  const grid = new Table({
    head: [
      '',
      'unit',
      'better',
      ...sizes.map((size) => sizeLabel(size, growth.axis.unit)),
      'slope',
      'change',
    ],
    colAligns: ['left', 'left', 'left', ...sizes.map(() => 'right' as const), 'right', 'right'],
    style: { head: [], border: [], compact: true },
  });
  let title = '';
  for (const curve of curves) {
    if (curve.figure.title !== title) grid.push([{ colSpan: sizes.length + 5, content: curve.figure.title }]);
    title = curve.figure.title;
    grid.push(line(curve, sizes));
  }
  return [
    growth.title,
    grid.toString(),
    '',
    ...curves.flatMap((curve) => verdict(curve)),
    ...growth.notes,
    `Medians of ${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${jobs.toLocaleString('en')} measured jobs. Slope: the exponent of the power of the size that fits best (least squares through the logarithms); 0 does not depend on the size, 1 doubles where the size doubles. Change: of the fitted value from the first size to the last.`,
    '',
    ...terms(result.terms),
    '',
    ...whereOf(surroundings, startedAt),
    ...failuresOf(samples),
  ].join('\n');
}

function line({ figure, contender, points, fit, change }: Curve, sizes: readonly number[]): string[] {
  const at = new Map(points.map(({ size, summary }) => [size, number(summary.median)]));
  return [
    `  ${contender}`,
    figure.unit,
    figure.better,
    ...sizes.map((size) => at.get(size) ?? '–'),
    fit === undefined ? '–' : short(fit.exponent),
    change === undefined ? '–' : signedPercent(change),
  ];
}

function verdict({ figure, contender, promise }: Curve): string[] {
  if (promise === undefined) return [];
  const said = `at most ${Math.round(promise.worse * 100)} % worse up to ${promise.upTo.toLocaleString('en')}`;
  return [
    `${promise.kept ? 'holds' : 'DOES NOT HOLD'}: ${figure.title}, ${contender}: ${signedPercent(promise.change)} (${said})`,
  ];
}
