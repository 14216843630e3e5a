/** Lines between one header and the next. */
const LINES = 50;
const COLUMNS = ['dispatched', 'delayed', 'ready', 'backing-off (s)'] as const;
/** Room for a million tasks and more; a wider number moves its neighbours, but stays whole. */
const WIDTHS = COLUMNS.map((column) => Math.max(column.length, 10));

export interface Row {
  readonly dispatched: number;
  readonly delayed: number;
  readonly ready: number;
  readonly waitMs: number;
}

/** Lines of a table without end, with a header now and then. */
export class Table {
  private lines = 0;

  /** The next line, preceded by a header if one is due. */
  line({ dispatched, delayed, ready, waitMs }: Row): string {
    const head = this.lines % LINES === 0 ? aligned(COLUMNS) : '';
    this.lines += 1;
    return head + aligned([String(dispatched), String(delayed), String(ready), seconds(waitMs)]);
  }
}

function aligned(cells: readonly string[]): string {
  return `${cells.map((cell, i) => cell.padStart(WIDTHS[i]!)).join('  ')}\n`;
}

/** Whole seconds, or one decimal; never 0 if there is a wait. */
function seconds(ms: number): string {
  return ms % 1000 === 0 ? String(ms / 1000) : (Math.ceil(ms / 100) / 10).toFixed(1);
}
