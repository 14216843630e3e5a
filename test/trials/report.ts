import type { Result } from './trial.js';

/** The figures of a trial, and their bounds. Figures without a bound are only printed. */
export interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit?: string;
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly equals?: number;
}

export function format(trial: string, { what, value, unit = '', atMost, atLeast, equals }: Figure): Result {
  const bounds = [
    ['≥', atLeast, (bound: number) => value >= bound],
    ['≤', atMost, (bound: number) => value <= bound],
    ['=', equals, (bound: number) => value === bound],
  ] as const;
  const given = bounds.filter(([, bound]) => bound !== undefined);
  // NaN: the figure was not measured.
  const pass = Number.isFinite(value) && given.every(([, bound, holds]) => holds(bound!));
  const must = given.map(([sign, bound]) => `${sign} ${bound} ${unit}`.trim()).join(', ');
  const figure = Number.isInteger(value) ? value : Number(value.toPrecision(3));
  return { trial, what, figure, unit, ...(must !== '' && { must }), pass };
}

/** All results as a table in Markdown. */
export function table(results: readonly Result[]): string {
  const rows = results.map(({ trial, what, figure, unit, must = '', pass }) => [
    trial,
    what,
    `${figure.toLocaleString('en')} ${unit}`.trim(),
    must,
    pass ? 'pass' : '**FAIL**',
  ]);
  const lines = [['trial', 'figure', 'measured', 'must', ''], ['---', '---', '---:', '---', '---'], ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
