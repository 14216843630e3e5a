import Table from 'cli-table3';
import type { Summary } from '../measure/stats.js';
import type { Result, Row } from './result.js';
import type { Surroundings } from './surroundings.js';

/** The whole report as plain text: table, what differs between the contenders, and where it was measured. */
export function render(result: Result): string {
  const names = Object.keys(result.terms);
  return [
    table(result.rows, names),
    ...legend(names),
    '',
    ...terms(result.terms),
    '',
    ...footer(result, names),
  ].join('\n');
}

/** Longer titles are wrapped, so that six contenders fit into 160 columns. */
const TITLE_WIDTH = 38;

const ARROW = { more: '↑', less: '↓' };

/** Only spaces between columns, because some lines span all of them. */
const NO_LINES = Object.fromEntries(
  ['top', 'bottom', 'mid', 'left', 'right'].flatMap((side) =>
    [side, `${side}-mid`, `${side}-left`, `${side}-right`].map((place) => [place, '']),
  ),
);

function table(rows: readonly Row[], [first, ...others]: readonly string[]): string {
  const names = [first!, ...others];
  const grid = new Table({
    head: ['', ...names],
    colAligns: ['left', ...names.map(() => 'right' as const)],
    chars: { ...NO_LINES, middle: ' ' },
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 1 },
  });
  let scenario = '';
  for (const row of rows) {
    if (row.scenario !== scenario) grid.push([{ colSpan: names.length + 1, content: `\n${titleOf(row)}` }]);
    scenario = row.scenario;
    grid.push([title(row), ...names.map((name) => cell(row, name))]);
  }
  return grid
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

function titleOf({ scenarioTitle, jobs }: Row): string {
  return `${scenarioTitle} · ${jobs.toLocaleString('en')} jobs`;
}

/** `throughput, jobs/s ↑`, in as many lines as it takes. */
function title({ title: what, unit, better }: Row): string {
  const lines: string[] = [];
  let line = ' ';
  for (const word of `${what}${unit && `, ${unit}`} ${ARROW[better]}`.split(' ')) {
    if (line.length + 1 + word.length > TITLE_WIDTH) {
      lines.push(line);
      line = '   ';
    }
    line += ` ${word}`;
  }
  return [...lines, line].join('\n');
}

function cell(row: Row, name: string): string {
  if (row.only?.includes(name) === false) return '–';
  const summary = row.contenders[name];
  if (summary === undefined) return 'failed';
  return [number(summary.median), spread(summary), advantage(row, name)].filter(Boolean).join(' ');
}

function spread(summary: Summary): string {
  // One value has no spread, and ±0 would claim one.
  return summary.count === 1 ? '' : `±${(summary.spread * 100).toFixed(0)}%`;
}

/** How many times better the first contender is. */
function advantage({ ratios, better }: Row, name: string): string {
  const ratio = ratios[name];
  if (ratio === undefined || ratio === 0) return '';
  return `(${short(better === 'more' ? ratio : 1 / ratio)}×)`;
}

/** Two significant digits: a ratio of two medians has no more. */
function short(value: number): string {
  return value >= 10 ? Math.round(value).toLocaleString('en') : value.toPrecision(2);
}

/** Three significant digits, and all digits before the point. */
export function number(value: number): string {
  if (value === 0) return '0';
  const before = Math.floor(Math.log10(Math.abs(value))) + 1;
  const digits = Math.min(4, Math.max(0, 3 - before));
  return Number.isInteger(value) && Math.abs(value) < 100
    ? String(value)
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function legend([first, ...others]: readonly string[]): string[] {
  const ratio = `; (n×): ${first} is n times better, below 1 the other one is ahead`;
  return ['', `↑ more is better, ↓ less is${others.length === 0 ? '' : ratio}; –: not offered`];
}

export function terms(all: Result['terms']): string[] {
  return [
    'What differs:',
    ...Object.entries(all).flatMap(([name, lines]) => lines.map((line) => `  ${name}: ${line}`)),
  ];
}

function footer({ rounds, surroundings, startedAt, samples }: Result, names: readonly string[]): string[] {
  return [
    `Medians of ${rounds} rounds ± half the range. Each title says how many jobs were measured; others went before as warm-up, mostly a fifth as many.`,
    `${names.join(', ')} took turns in each round, each measurement in a process of its own, on one private Redis that was emptied between.`,
    'Redis CPU, commands and script calls of whatever consumes are those of the whole run, its warm-up and start included; all other figures leave them out.',
    ...whereOf(surroundings, startedAt),
    ...failuresOf(samples),
  ];
}

/** Machine, versions and settings. */
export function whereOf(
  { machine, node, redis, packages, commit }: Surroundings,
  startedAt: string,
): string[] {
  const settings = Object.entries(redis.settings).map(
    ([key, value]) => `${key} ${value === '' ? "''" : value}`,
  );
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}; load before ${machine.loadBefore.toFixed(2)}`,
    `Node ${node}, Redis ${redis.version} (${settings.join(', ')}), commit ${commit}, ${startedAt}`,
    Object.entries(packages)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
  ];
}

export function failuresOf(samples: Result['samples']): string[] {
  return samples
    .filter((s) => s.error !== undefined)
    .map((s) => `FAILED ${s.scenario} · ${s.contender} · round ${s.round}: ${s.error}`);
}
