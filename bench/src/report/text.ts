import Table from 'cli-table3';
import type { Summary } from '../measure/stats.js';
import type { Result, Row } from './result.js';
import type { Surroundings } from './surroundings.js';

/** The whole report as plain text: table, what differs between the contenders, and where it was measured. */
export function render(result: Result): string {
  const names = Object.keys(result.terms);
  return [table(result.rows, names), '', ...terms(result.terms), '', ...footer(result, names)].join('\n');
}

function table(rows: readonly Row[], [first, ...others]: readonly string[]): string {
  const names = [first!, ...others];
  const grid = new Table({
    head: ['', 'unit', 'better', ...names, ...others.map((other) => `${first} ÷ ${other}`)],
    colAligns: ['left', 'left', 'left', ...[...names, ...others].map(() => 'right' as const)],
    style: { head: [], border: [], compact: true },
  });
  let scenario = '';
  for (const row of rows) {
    if (row.scenario !== scenario)
      grid.push([{ colSpan: 3 + names.length + others.length, content: row.scenarioTitle }]);
    scenario = row.scenario;
    grid.push([
      `  ${row.title}`,
      row.unit,
      row.better,
      ...names.map((name) => (row.only?.includes(name) === false ? '–' : cell(row.contenders[name]))),
      ...others.map((other) => (row.ratios[other] === undefined ? '–' : number(row.ratios[other]))),
    ]);
  }
  return grid.toString();
}

export function cell(summary: Summary | undefined): string {
  if (summary === undefined) return 'failed';
  // One value has no spread, and ±0 would claim one.
  if (summary.count === 1) return number(summary.median);
  return `${number(summary.median)} ±${(summary.spread * 100).toFixed(0)} %`;
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

export function terms(all: Result['terms']): string[] {
  return [
    'What differs:',
    ...Object.entries(all).flatMap(([name, lines]) => lines.map((line) => `  ${name}: ${line}`)),
  ];
}

function footer(
  { jobs, rounds, surroundings, startedAt, samples }: Result,
  names: readonly string[],
): string[] {
  return [
    `Medians of ${rounds} rounds ± half the range. ${jobs.toLocaleString('en')} jobs (a tenth of it in add-one; in add-replicated half of it in flight and a twentieth one by one), a fifth as many before as warm-up.`,
    `${names.join(', ')} took turns in each round, each measurement in a process of its own, on one private Redis that was emptied between.`,
    'Redis CPU, commands and script calls of consume are those of the whole run, its warm-up and start included; all other figures leave them out.',
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
