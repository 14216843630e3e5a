import { styleText } from 'node:util';
import { escaped } from '../../errors/show.js';
import { counted } from '../../job/text.js';
import { columnsOf, cutTo, padTo } from './columns.js';

type Style = Parameters<typeof styleText>[0];

export interface Column {
  readonly title: string;
  /** Numbers are aligned to the right. @default 'left' */
  readonly align?: 'left' | 'right';
  /** Whether the column may be cut if the line is too long. The widest one is cut first. @default false */
  readonly cut?: boolean;
  /**
   * The text continues on further lines if the line is too long. Other columns are cut until this column is at least this long, or
   * half a narrow screen. Only for the last column.
   *
   * @default never
   */
  readonly wrap?: number;
  /** The column is left out if the line is too long even after cuts: 1 first, then 2, … @default never */
  readonly spare?: number;
}

/** A column of numbers. */
export const right = (title: string) => ({ title, align: 'right' }) as const;
/** A last column of sentences. */
export const wrapped = (title: string, wrap = 40) => ({ title, wrap }) as const;
/** A column that may be cut. */
export const cut = (title: string) => ({ title, cut: true }) as const;

/** A column that may be left out. */
export const spare = (order: number, column: Column): Column => ({ ...column, spare: order });

/** A cell, or one with a colour. */
export type Cell = string | number | { readonly text: string; readonly style: Style };

/** How a terminal shows lines. */
export interface Screen {
  /** Columns of a line; undefined for no limit. */
  readonly width: number | undefined;
  readonly color: boolean;
}

const GAP = '  ';
/** A column is never cut below this. */
const LEAST = 6;

/**
 * The lines of a table, with a head, and the titles of columns that the screen has no room for. Cells are escaped: names and texts of
 * errors come from outside.
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  screen: Screen,
): { readonly text: string; readonly left: readonly string[] } {
  const { text, excess } = linesIn(columns, rows, screen);
  const spares = columns.map(({ spare: order }) => order ?? Infinity);
  const at = spares.indexOf(Math.min(...spares));
  if (excess <= 0 || spares[at] === Infinity) return { text, left: [] };
  const fewer = rows.map((row) => row.toSpliced(at, 1));
  const rest = table(columns.toSpliced(at, 1), fewer, screen);
  return { text: rest.text, left: [columns[at]!.title, ...rest.left] };
}

/** @returns how many columns the longest line is beyond the width of the screen. */
function linesIn(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { width, color }: Screen,
): { readonly text: string; readonly excess: number } {
  const texts = rows.map((row) => row.map((cell) => escaped(textOf(cell))));
  const widths = columns.map(({ title }, i) =>
    Math.max(title.length, ...texts.map((row) => columnsOf(row[i]!))),
  );
  const excess = width === undefined ? 0 : fit(columns, widths, width);
  const last = columns.length - 1;
  const lines = texts.map((row) => (columns[last]!.wrap ? linesOf(row[last]!, widths[last]!) : [row[last]!]));
  const line = (cells: readonly string[], style: (i: number, text: string) => string) =>
    cells
      .map((text, i) => style(i, padded(text, widths[i]!, columns[i]!)))
      .join(GAP)
      .trimEnd();
  const head = line(
    columns.map(({ title }) => title),
    (_, text) => paint('dim', text, color),
  );
  const body = texts.flatMap((cells, at) => {
    const [first, ...more] = lines[at]!;
    const styled = line([...cells.slice(0, -1), first!], (i, text) => {
      const cell = rows[at]![i]!;
      return typeof cell === 'object' ? paint(cell.style, text, color) : text;
    });
    const empty = cells.slice(0, -1).map(() => '');
    return [styled, ...more.map((text) => line([...empty, text], (_, padding) => padding))];
  });
  return { text: `${[head, ...body].join('\n')}\n`, excess };
}

export function paint(style: Style, text: string, color: boolean): string {
  return color ? styleText(style, text, { validateStream: false }) : text;
}

/** The lines of a text. A word that is longer, such as the name of a queue in a command, stays whole. */
function linesOf(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && columnsOf(last) + 1 + columnsOf(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Narrows the columns that may be cut or wrapped, until the line fits or none can be narrower. Returns by how much it is still too long. */
function fit(columns: readonly Column[], widths: number[], width: number): number {
  const wrapped = columns.findIndex(({ wrap }) => wrap !== undefined);
  const full = widths[wrapped] ?? 0;
  if (wrapped >= 0) widths[wrapped] = Math.min(full, columns[wrapped]!.wrap!, Math.ceil(width / 2));
  const excess = () => widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1) - width;
  while (excess() > 0) {
    const cuttable = columns.flatMap(({ cut, title }, i) =>
      cut && widths[i]! > Math.max(LEAST, title.length) ? [i] : [],
    );
    if (cuttable.length === 0) break;
    const widest = cuttable.reduce((a, b) => (widths[b]! > widths[a]! ? b : a));
    widths[widest]! -= 1;
  }
  if (wrapped >= 0) widths[wrapped] = Math.min(full, widths[wrapped]! + Math.max(0, -excess()));
  return excess();
}

function padded(text: string, width: number, { align = 'left', wrap }: Column): string {
  return padTo(wrap === undefined ? cutTo(text, width) : text, width, align);
}

function textOf(cell: Cell): string {
  return typeof cell === 'object' ? cell.text : String(cell);
}

/** `12 s`, `3 m`, `2 h`, `5 d`; `-` for none. */
export function age(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '-';
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} m`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const;

/** A time without rounding, in the largest unit that fits: `90 s`, `5 m`, `36 h`. */
export function interval(ms: number): string {
  const [size, unit] = UNITS.find(([one]) => ms % one === 0 && ms > 0) ?? [1, 'ms'];
  return `${ms / size} ${unit}`;
}

/** `800 B`, `3.2 kB`, `48 MB`. */
export function bytes(count: number): string {
  const power = count < 1_000 ? 0 : Math.min(4, Math.floor(Math.log10(count) / 3));
  const value = count / 1_000 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`;
}

/** How many jobs wait, as the start of a sentence. */
export function jobsWait(count: number): string {
  return counted(count, 'job waits', 'jobs wait');
}
