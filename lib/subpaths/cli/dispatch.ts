import { DispatchLoop } from '../../dispatcher/dispatch-loop.js';
import { openTasks, type OpenTasks } from '../../engine/redis-tasks.js';
import { isPassing, repeatDelay, within } from '../../contract/retry.js';
import { GodwitError, RedisRefusedError } from '../../errors.js';
import type { RedisConnection } from '../../options/connection.js';
import type { DispatchOptions } from './dispatch-options.js';
import type { Output } from './output.js';
import type { LinkEvent } from '../../contract/engine.js';

/** How long the call in flight may take to end, and after it the connection: together less than a second. */
const END_MS = 300;

/** Moves tasks until the signal; returns the exit code. */
export async function runDispatch(
  options: DispatchOptions,
  output: Output,
  signal: AbortSignal,
): Promise<number> {
  const complain = (text: string) => output.printError(`godwit dispatch: ${text}`);
  try {
    try {
      await moveTasks({ ...options, connection: options.url }, output, complain, signal);
    } catch (error) {
      if (!isOfCluster(error)) throw error;
      await moveTasks({ ...options, connection: { cluster: [options.url] } }, output, complain, signal);
    }
    return 0;
  } catch (error) {
    if (!(error instanceof GodwitError)) throw error;
    complain(error.message);
    return 1;
  }
}

/** Whether the server at this URL is a node of a cluster. */
function isOfCluster(error: unknown): boolean {
  return error instanceof RedisRefusedError && error.reply === 'MOVED';
}

/** Resolves after the signal. Rejects with an error that is not temporary. */
async function moveTasks(
  plan: DispatchOptions & { readonly connection: RedisConnection },
  output: Output,
  complain: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { connection, delayedKey, readyKey, batchSize: limit, verbose } = plan;
  const tasks = openTasks(connection);
  const table = verbose ? new Table() : null;
  const backOff = new BackOff();
  const loop = new DispatchLoop({
    dispatch: () => tasks.dispatch({ delayedKey, readyKey, limit, unit: 's' }),
    answered: (answer) => {
      news.there();
      const waitMs = backOff.after(answer);
      if (table) output.print(table.line({ ...answer, waitMs }));
      return waitMs;
    },
    failed: (error, tries) => {
      if (!isPassing(error) || (isOfCluster(error) && typeof connection === 'string')) throw error;
      news.away(error);
      return repeatDelay(error, tries);
    },
  });
  const news = new LinkNews(placeOf(plan.url), complain, () => loop.wake());
  tasks.onLink(news.heard);
  await runUntil(signal, loop, tasks);
}

async function runUntil(signal: AbortSignal, loop: DispatchLoop, tasks: OpenTasks): Promise<void> {
  const running = loop.run();
  const asked = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  try {
    await Promise.race([running, asked]);
  } finally {
    loop.stop();
    await within(END_MS, running);
    await within(END_MS, tasks.close());
  }
}

/** Host and port of a URL, which may also have a user and a password. */
function placeOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname || 'localhost'}:${port || '6379'}`;
}

/** Seconds to wait after each consecutive look that moved nothing. The last number repeats. */
const SECONDS = [0, 1, 1, 2, 3, 5, 8, 13] as const;

/** How long to wait while nothing is due. */
export class BackOff {
  private idle = 0;

  /**
   * Ms to wait after a look: none as long as tasks are moved, then as long as the table says, but never beyond the moment at
   * which the next task is due.
   */
  after({ dispatched, dueInMs }: { readonly dispatched: number; readonly dueInMs: number | null }): number {
    if (dispatched > 0) {
      this.idle = 0;
      return 0;
    }
    const seconds = SECONDS[Math.min(this.idle, SECONDS.length - 1)]!;
    this.idle += 1;
    return Math.min(seconds * 1000, dueInMs ?? Infinity);
  }
}

/** Prints once that Redis is not reachable or refuses to work, and once that it works again. */
class LinkNews {
  private isAway = false;
  /** Redis is connected, but refuses the call for now: it is a replica, or loads its data. Only an answer ends this. */
  private isRefused = false;
  private wasThere = false;

  constructor(
    /** Address without a password. */
    private readonly place: string,
    private readonly print: (text: string) => void,
    /** Called when Redis works again. */
    private readonly back: () => void,
  ) {}

  /** Logs events of the connection. */
  readonly heard = ({ state, error }: LinkEvent): void => {
    if (state === 'down') this.away(error);
    else if (!error && !this.isRefused) this.there();
  };

  /** Redis is not reachable, or refuses to work. */
  away(error: unknown): void {
    if (isRefusal(error)) return;
    const isRefused = error instanceof RedisRefusedError;
    // A refused call closes its connection in some cases, so both alternate. The refusal says more, so it is printed too.
    if (this.isRefused || (this.isAway && !isRefused)) return;
    this.isAway = true;
    this.isRefused = isRefused;
    this.print(`${this.describe(error, isRefused)}; retrying`);
  }

  private describe(error: unknown, isRefused: boolean): string {
    if (isRefused) return `Redis at ${this.place} moves no tasks now: ${reasonOf(error)}`;
    const why = reasonOf(error);
    const what = this.wasThere ? `lost Redis at ${this.place}` : `cannot reach Redis at ${this.place}`;
    return `${what}${why && ` (${why})`}`;
  }

  /** Redis has answered. */
  there(): void {
    const again = this.wasThere ? ' again' : '';
    this.wasThere = true;
    if (!this.isAway) return;
    const what = this.isRefused ? 'moves tasks' : 'is reachable';
    this.isAway = false;
    this.isRefused = false;
    this.print(`Redis at ${this.place} ${what}${again}`);
    this.back();
  }
}

/** Errors of Redis on connecting end the command or fail the next call, and are reported there. */
function isRefusal(error: unknown): boolean {
  if (error instanceof GodwitError) return !isPassing(error);
  return error instanceof Error && error.name === 'ReplyError';
}

/** If a host has several addresses, Node's combined error has no message. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}

/** Lines between one header and the next. */
const LINES = 50;
const COLUMNS = ['dispatched', 'delayed', 'ready', 'backing-off (s)'] as const;
/** Wide enough for a million tasks. A longer number is printed in full and shifts the columns after it. */
const WIDTHS = COLUMNS.map((column) => Math.max(column.length, 10));

interface Row {
  readonly dispatched: number;
  readonly delayed: number;
  readonly ready: number;
  readonly waitMs: number;
}

/** Lines of an endless table, with a header every 50 lines. */
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
