import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Result } from '../report/result.js';
import { drawBars } from './bars.js';
import { comparisonPanels, ratioPanel } from './comparison.js';
import { curvePanels } from './curves.js';
import { newest } from './inputs.js';
import { drawCurves } from './lines.js';
import { drawRatios } from './ratios.js';
import { behindTable, figuresTable, fillMarked, LIMIT_LINES, sourceLine, summary } from './table.js';
import { themes, type Theme } from './theme.js';

const OWN = 'godwit';
const PEER = '@nestjs/bullmq';
const BENCH = fileURLToPath(new URL('../../', import.meta.url));
const README = join(BENCH, '../README.md');
const FIGURES = join(BENCH, '../docs/internals/benchmarks.md');

const HELP = `Draws bench/plots/*.svg and writes the figures of docs/internals/benchmarks.md and the summary of README.md, from the
newest results in bench/results, or from those that are named:

  node bench/dist/plots/main.js [file.json …]
`;

const files = process.argv.slice(2);
if (files.includes('--help')) process.stdout.write(HELP);
else paint(newest((files.length > 0 ? files : stored()).map(read)));

function paint({ comparison, limits, everyRow, growths }: ReturnType<typeof newest>): void {
  if (comparison) {
    const panels = comparisonPanels(comparison.rows, OWN);
    if (panels.length > 0) write('comparison', (theme) => drawBars(panels, theme));
    const ratios = ratioPanel(everyRow, OWN);
    if (ratios.lines.length > 0) write('ratios', (theme) => drawRatios(ratios, theme));
    fill(FIGURES, 'figures', `${figuresTable(comparison, OWN)}\n\n${sourceLine(comparison)}`);
    fill(FIGURES, 'behind', behindTable(everyRow, OWN));
    fill(README, 'summary', summary(comparison, OWN, PEER));
    process.stderr.write(`the figures are those of the run of ${comparison.startedAt}\n`);
  }
  if (limits) fill(FIGURES, 'limits', `${figuresTable(limits, OWN, LIMIT_LINES)}\n\n${sourceLine(limits)}`);
  for (const result of growths) {
    const panels = curvePanels(result, OWN);
    if (panels.length > 0) write(`growth-${result.growth.name}`, (theme) => drawCurves(panels, theme));
  }
  if (!comparison && growths.length === 0) {
    process.stderr.write('there are no results: npm run bench, npm run bench:growth\n');
    process.exitCode = 1;
  }
}

function fill(page: string, marker: string, text: string): void {
  writeFileSync(page, fillMarked(readFileSync(page, 'utf8'), marker, text));
}

function write(name: string, plot: (theme: Theme) => string): void {
  mkdirSync(join(BENCH, 'plots'), { recursive: true });
  for (const theme of themes) {
    const file = join(BENCH, 'plots', `${name}-${theme.name}.svg`);
    writeFileSync(file, plot(theme));
    process.stderr.write(`${relative(process.cwd(), file)}\n`);
  }
}

function stored(): string[] {
  const folder = join(BENCH, 'results');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => join(folder, name));
}

function read(file: string): Result {
  return JSON.parse(readFileSync(file, 'utf8')) as Result;
}
