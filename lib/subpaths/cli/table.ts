import { styleText } from 'node:util';
import { escaped } from '../../errors/show.js';
import { counted } from '../../job/text.js';

type Style = Parameters<typeof styleText>[0];

export interface Column {
  readonly title: string;
  /** Numbers are aligned to the right. @default 'left' */
  readonly align?: 'left' | 'right';
  /** Whether the column may be cut if the line is too long. The widest one is cut first. @default false */
  readonly cut?: boolean;
  /** Whether the text continues on further lines if the line is too long. Only for the last column. @default false */
  readonly wrap?: boolean;
}

/** A column of numbers. */
export const right = (title: string) => ({ title, align: 'right' }) as const;
/** A last column of sentences. */
export const wrapped = (title: string) => ({ title, wrap: true }) as const;
/** A column that may be cut. */
export const cut = (title: string) => ({ title, cut: true }) as const;

/** A cell, or one with a colour. */
export type Cell = string | number | { readonly text: string; readonly style: Style };

/** How a terminal shows lines. */
export interface Screen {
  /** Characters of a line; undefined for no limit. */
  readonly width: number | undefined;
  readonly color: boolean;
}

const GAP = '  ';
/** A column is never cut below this. */
const LEAST = 6;
/** Columns are cut until wrapped lines are at least this long. */
const LEAST_WRAPPED = 40;

/** The lines of a table, with a head. Cells are escaped: names and texts of errors come from outside. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { width, color }: Screen,
): string {
  const texts = rows.map((row) => row.map((cell) => escaped(textOf(cell))));
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...texts.map((row) => row[i]!.length)));
  if (width !== undefined) fit(columns, widths, width);
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
  return `${[head, ...body].join('\n')}\n`;
}

export function paint(style: Style, text: string, color: boolean): string {
  return color ? styleText(style, text, { validateStream: false }) : text;
}

/** The lines of a text. A word that is longer, such as the name of a queue in a command, stays whole. */
function linesOf(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Narrows the columns that may be cut or wrapped, until the line fits or none can be narrower. */
function fit(columns: readonly Column[], widths: number[], width: number): void {
  const wrapped = columns.findIndex(({ wrap }) => wrap);
  const full = widths[wrapped] ?? 0;
  if (wrapped >= 0) widths[wrapped] = Math.min(full, LEAST_WRAPPED);
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
}

function padded(text: string, width: number, { align = 'left', wrap: isWhole }: Column): string {
  const short = text.length > width && !isWhole ? `${text.slice(0, width - 1)}…` : text;
  return align === 'right' ? short.padStart(width) : short.padEnd(width);
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

/** How many jobs wait, as the start of a sentence. */
export function jobsWait(count: number): string {
  return counted(count, 'job waits', 'jobs wait');
}
