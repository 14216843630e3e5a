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
}

/** A column of numbers. */
export const right = (title: string) => ({ title, align: 'right' }) as const;
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

/** The lines of a table, with a head. Cells are escaped: names and texts of errors come from outside. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { width, color }: Screen,
): string {
  const texts = rows.map((row) => row.map((cell) => escaped(textOf(cell))));
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...texts.map((row) => row[i]!.length)));
  if (width !== undefined) fit(columns, widths, width);
  const line = (cells: readonly string[], style: (i: number, text: string) => string) =>
    cells
      .map((text, i) => style(i, padded(text, widths[i]!, columns[i]!.align ?? 'left')))
      .join(GAP)
      .trimEnd();
  const head = line(
    columns.map(({ title }) => title),
    (_, text) => paint('dim', text, color),
  );
  const body = texts.map((cells, at) =>
    line(cells, (i, text) => {
      const cell = rows[at]![i]!;
      return typeof cell === 'object' ? paint(cell.style, text, color) : text;
    }),
  );
  return `${[head, ...body].join('\n')}\n`;
}

export function paint(style: Style, text: string, color: boolean): string {
  return color ? styleText(style, text, { validateStream: false }) : text;
}

/** Narrows the columns that may be cut, until the line fits or none can be narrower. */
function fit(columns: readonly Column[], widths: number[], width: number): void {
  const excess = () => widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1) - width;
  while (excess() > 0) {
    const cuttable = columns.flatMap(({ cut, title }, i) =>
      cut && widths[i]! > Math.max(LEAST, title.length) ? [i] : [],
    );
    if (cuttable.length === 0) return;
    const widest = cuttable.reduce((a, b) => (widths[b]! > widths[a]! ? b : a));
    widths[widest]! -= 1;
  }
}

function padded(text: string, width: number, align: 'left' | 'right'): string {
  const short = text.length > width ? `${text.slice(0, width - 1)}…` : text;
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
