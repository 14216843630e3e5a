import { emitKeypressEvents } from 'node:readline';
import { EVENT_TYPES, type EventType } from '../../contract/engine.js';
import { isPassing, pause } from '../../contract/retry.js';
import { countedBetween, countedDays, type CountedDays } from '../../contract/stats.js';
import { numberOfEvent, type QueueEvent } from '../../events/queue-event.js';
import type { QueueEvents } from '../../events/queue-events.js';
import { RedisRefusedError, RedisUnavailableError } from '../../errors.js';
import { escaped } from '../../errors/show.js';
import { readEach } from '../../inspect/queue-inspector.js';
import { isPausedByAll } from '../../inspect/serving.js';
import type { FailureRecord } from '../../job/outcome.js';
import { counted, quoted } from '../../job/text.js';
import { HttpServer, metricsAnswer } from '../probes/http-server.js';
import { scaleRoute } from '../probes/scale.js';
import { QueueMetrics } from '../prometheus/queue-metrics.js';
import {
  faultTexts,
  MANY,
  numberOf,
  PORTS,
  stopped,
  urlOf,
  type Command,
  type Context,
  type Printer,
} from './context.js';
import { DONE, messageFor, STOPPED, UNHEALTHY } from './failure.js';
import { doctor, refusedWrites } from './doctor.js';
import { QUEUE_COLUMNS, queueRows, RUN_COLUMNS, runRow, runsOf } from './queue-commands.js';
import { age, jobsWait, table } from './table.js';
import { cannotListen, didYouMean, UsageError } from './usage-error.js';

const tail: Command = {
  name: 'tail',
  usage: '[queue…]',
  about: 'prints events as they happen, one line each, until it is stopped',
  words: [0, 1_000],
  options: {
    type: { type: 'string', about: 'only these types, e.g. dead,retrying' },
    name: { type: 'string', about: 'only jobs with this name' },
    since: {
      type: 'string',
      about: 'events after the one with this number (eventId with --json); 0 for all; needs one queue',
    },
  },
  async run({ inspector, words, values, print, signal }) {
    const types = typesOf(values['type'] as string | undefined);
    const queues = await inspector.namesOf(words.length > 0 ? words : undefined);
    const { name, since } = values as Record<string, string | undefined>;
    checkSince(since, queues);
    const { engine } = inspector.producer;
    // Loaded only here: no other command needs RxJS.
    const { QueueEvents: Events } = await import('../../events/queue-events.js');
    const events = new Events(
      () => engine,
      () => queues,
      () => undefined,
    );
    const status = reportStatus(events, print);
    const wanted = (event: QueueEvent) =>
      (types?.includes(event.type) ?? true) &&
      (name === undefined || ('name' in event && event.name === name));
    const failed = new Promise<never>((_, reject) => {
      for (const queue of queues)
        events.of(queue, since === undefined ? {} : { since }).subscribe({
          next: (event) => {
            if (wanted(event)) show(event, print);
          },
          error: reject,
        });
    });
    await Promise.race([stopped(signal), failed]);
    status.unsubscribe();
    await events.close();
    return STOPPED;
  },
};

/** Without a warning, an outage of Redis would look like a time without events. */
function reportStatus({ status$ }: Pick<QueueEvents, 'status$'>, print: Context['print']) {
  let isLost = false;
  return status$.subscribe((status) => {
    if (status.state === 'lost' && !isLost) {
      isLost = true;
      print.unreadable([`no events arrive: ${status.error.message}`]);
    } else if (status.state === 'live' && isLost) {
      isLost = false;
      print.unreadable(['events arrive again']);
    } else if (status.state === 'gap')
      print.unreadable([
        `queue ${status.queue}: ${status.missed === null ? 'some' : status.missed} events were missed`,
      ]);
  });
}

const watch: Command = {
  name: 'watch',
  usage: '[queue…]',
  about: 'prints a line for each queue whose counts changed, until it is stopped',
  words: [0, 1_000],
  options: {
    interval: { type: 'string', about: 'seconds between two readings (default: 5)' },
    times: { type: 'string', about: 'readings before it ends (default: no end)' },
  },
  async run(context) {
    const { inspector, words, print, signal } = context;
    const intervalMs = intervalOf(context, 5);
    const times = numberOf(context, 'times', Infinity, [1, MANY]);
    const before = new Map<string, Watched>();
    const lines = new WatchLines(print);
    let code = DONE;
    let told = '';
    let wasAway = false;
    for (let look = 1; !signal.aborted; look++) {
      // oxlint-disable-next-line no-await-in-loop -- one read after another
      const { found, faults, away } = await watched(inspector, words).catch((error: Error) => {
        // A wrong address is reported at once. Later, Redis may come back.
        if (look === 1 || !isPassing(error)) throw error;
        return { found: [], faults: new Map<string, Error>(), away: [error.message] };
      });
      lines.fit(found.map(({ queue }) => queue));
      for (const now of found) {
        const last = before.get(now.queue);
        before.set(now.queue, now);
        if (last === undefined || Object.values(changesOf(now, last)).some((change) => change !== 0))
          lines.show(now, last);
      }
      const texts = [...faultTexts(faults), ...away];
      const isAway = away.length > 0;
      // The text of the error changes during an outage, so only the first one is printed.
      if (texts.join('\n') !== told && !(isAway && wasAway)) code = print.unreadable(texts);
      if (wasAway && !isAway) print.unreadable(['the queues can be read again']);
      told = texts.join('\n');
      wasAway = isAway;
      if (look >= times) return code;
      // oxlint-disable-next-line no-await-in-loop -- the same
      await pause(intervalMs, signal);
    }
    return STOPPED;
  },
};

/** The option `--interval`, in ms. */
function intervalOf(context: Context, otherwise: number): number {
  return numberOf(context, 'interval', otherwise, [1, 86_400]) * 1_000;
}

const WATCHED = ['waiting', 'active', 'delayed', 'dead', 'completed', 'failed'] as const;
/** The same, the most needed first: a narrow terminal has no room for the last ones. */
const NEEDED = ['waiting', 'dead', 'failed', 'active', 'completed', 'delayed'] as const;

type WatchedCounts = Record<(typeof WATCHED)[number], number>;
type Watched = { readonly queue: string; readonly at: Date; readonly days: CountedDays } & WatchedCounts;

/** Counts of the queues that can be read, by state, and completed and failed jobs of today and yesterday. */
async function watched(inspector: Context['inspector'], names: readonly string[]) {
  const faults = new Map<string, Error>();
  const read = async (queue: string): Promise<Watched> => {
    const { waiting, active, delayed, dead } = (await inspector.info(queue)).counts;
    const stats = await inspector.queue(queue).stats({ days: 2 });
    const { processed: completed, failed } = stats.total;
    const at = new Date(inspector.producer.engine.now());
    const days = countedDays(stats);
    return { queue, at, days, waiting, active, delayed, dead, completed, failed };
  };
  const all = await inspector.namesOf(names.length > 0 ? names : undefined);
  return { found: await readEach(all, read, faults), faults, away: [] };
}

function changesOf(now: Watched, last: Watched): WatchedCounts {
  const changes = Object.fromEntries(WATCHED.map((key) => [key, now[key] - last[key]])) as WatchedCounts;
  const counted = countedBetween(last.days, now.days);
  return counted ? { ...changes, completed: counted.processed, failed: counted.failed } : changes;
}

/** Lines between one header and the next. */
const HEADER_EVERY = 50;
/** Six columns of this width, the time and a name of 15 characters fit 80 columns. */
const COUNT_WIDTH = 8;
const LEAST_NAME = 8;
const TIME_WIDTH = 'HH:MM:SS  '.length;

/** Lines of an endless table. A count that does not fit shifts the rest of its line. */
export class WatchLines {
  private lines = 0;
  private nameWidth = LEAST_NAME;
  private columns: readonly (typeof COLUMNS)[number][] = COLUMNS;

  constructor(private readonly print: Pick<Printer, 'isJson' | 'jsonLine' | 'line' | 'paint' | 'screen'>) {}

  /** Chooses the columns for the width of the screen, and sets that of the names. It becomes narrower only with the screen. */
  fit(queues: readonly string[]): void {
    const { width = Infinity } = this.print.screen;
    let needed = NEEDED.length;
    const fitting = () => COLUMNS.filter(({ key }) => NEEDED.indexOf(key) < needed);
    while (needed > 1 && TIME_WIDTH + LEAST_NAME + widthOf(fitting()) > width) needed -= 1;
    const columns = fitting();
    if (columns.length !== this.columns.length) this.lines = 0;
    this.columns = columns;
    const most = Math.max(LEAST_NAME, width - TIME_WIDTH - widthOf(columns));
    const longest = Math.max(...queues.map((name) => escaped(name).length), this.nameWidth);
    this.nameWidth = Math.min(most, longest);
  }

  show(now: Watched, last: Watched | undefined): void {
    const changes = changesOf(now, last ?? now);
    if (this.print.isJson) {
      return this.print.jsonLine({ ...now, days: undefined, changes: last === undefined ? null : changes });
    }
    if (this.lines % HEADER_EVERY === 0)
      this.line('TIME', 'QUEUE', (key, width) => key.toUpperCase().padStart(width));
    this.lines += 1;
    this.line(now.at.toISOString().slice(11, 19), now.queue, (key, width) => {
      const change = changes[key];
      const text = `${now[key]}${change === 0 ? '' : ` ${change > 0 ? '+' : ''}${change}`}`.padStart(width);
      return key === 'dead' && change > 0 ? this.print.paint('red', text) : text;
    });
  }

  private line(
    time: string,
    queue: string,
    cell: (key: (typeof WATCHED)[number], width: number) => string,
  ): void {
    const name = escaped(queue);
    const width = this.nameWidth;
    const short = name.length > width ? `${name.slice(0, width - 1)}…` : name.padEnd(width);
    const cells = this.columns.map((column) => cell(column.key, column.width));
    this.print.line(`${time.padEnd(8)}  ${short} ${cells.join(' ')}`);
  }
}

const COLUMNS = WATCHED.map((key) => ({ key, width: Math.max(COUNT_WIDTH, key.length) }));

function widthOf(columns: readonly { readonly width: number }[]): number {
  return columns.reduce((sum, { width }) => sum + 1 + width, 0);
}

/** Characters of the message of an error in a line. */
const MOST_MESSAGE = 300;
const SHOWN = new Set(['at', 'queue', 'type', 'eventId']);
const COLORS = { dead: 'red', retrying: 'yellow', stalled: 'red', completed: 'green' } as const;

function show(event: QueueEvent, print: Context['print']): void {
  if (print.isJson) return print.jsonLine(event);
  const { at, queue, type } = event;
  const { jobId, name, reason, error, ...more } = event as unknown as Shown;
  const details = Object.entries(more)
    .filter(([key, value]) => !SHOWN.has(key) && value !== undefined && value !== null)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const style = COLORS[type as keyof typeof COLORS];
  const kind = style ? print.paint(style, type.padEnd(10)) : type.padEnd(10);
  const head = `${at.toISOString().slice(11, 23)}  ${queue}  `;
  const why = [reason, error && `${error.name}: ${error.message.slice(0, MOST_MESSAGE)}`].filter(Boolean);
  const text = [name, jobId, why.join(': ')].filter(Boolean).join('  ');
  print.eventLine(head + kind, head.length + Math.max(10, type.length), text, details.join('  '));
}

/** Fields of events that come before the others. */
interface Shown extends Readonly<Record<string, unknown>> {
  readonly jobId?: string;
  readonly name?: string;
  readonly reason?: string;
  readonly error?: FailureRecord | null;
}

function checkSince(since: string | undefined, queues: readonly string[]): void {
  if (since === undefined) return;
  if (numberOfEvent(since) === undefined)
    throw new UsageError(
      `--since must be the number of an event (eventId with --json), or 0 for all that are stored, got ${quoted(since.slice(0, 100))}`,
      '',
    );
  if (queues.length !== 1) throw new UsageError('--since needs one queue', '');
}

function typesOf(given: string | undefined): readonly string[] | undefined {
  const types = given?.split(',').map((type) => type.trim());
  const wrong = types?.find((type) => !EVENT_TYPES.includes(type as EventType));
  if (wrong === undefined) return types;
  throw new UsageError(
    `--type: ${quoted(wrong.slice(0, 100))} is not one of ${EVENT_TYPES.join(', ')}${didYouMean(wrong, EVENT_TYPES)}`,
    '',
  );
}

const health: Command = {
  name: 'health',
  usage: '[queue…]',
  about:
    'exit code 0 if Redis answers and takes writes, the queues have workers and no limit is exceeded, else 4',
  words: [0, 1_000],
  options: {
    'max-waiting': { type: 'string', about: 'the most waiting jobs that a queue may have' },
    'max-oldest': { type: 'string', about: 'the most seconds that a job may have waited' },
  },
  async run(context) {
    const maxWaiting = numberOf(context, 'max-waiting', Infinity);
    const maxOldest = numberOf(context, 'max-oldest', Infinity) * 1000;
    const { found, missing, away } = await readable(context);
    const unhealthy = found.flatMap(({ name, counts, workers, workersPaused, oldestWaitingMs }) => [
      ...(counts.waiting > 0 && workers === 0
        ? [`${name}: ${jobsWait(counts.waiting)} and no process works on it`]
        : []),
      ...(counts.waiting > 0 && isPausedByAll({ processes: workers ?? 0, paused: workersPaused ?? 0 })
        ? [`${name}: ${jobsWait(counts.waiting)} and all processes of the queue have paused it`]
        : []),
      ...(counts.waiting > maxWaiting ? [`${name}: ${jobsWait(counts.waiting)}`] : []),
      ...((oldestWaitingMs ?? 0) > maxOldest
        ? [`${name}: the oldest job has waited ${age(oldestWaitingMs)}`]
        : []),
    ]);
    const refused =
      away.length > 0
        ? []
        : await refusedWrites(
            context,
            found.map(({ name }) => name),
          );
    const faults = [...away, ...refused.map(({ text }) => text), ...missing, ...unhealthy];
    const text = faults.length === 0 ? `healthy, ${counted(found.length, 'queue')}` : faults.join('\n');
    context.print.done(text, { healthy: faults.length === 0, faults });
    return faults.length === 0 ? DONE : UNHEALTHY;
  },
};

/** The rows of the queues, or why Redis does not answer. */
async function readable(context: Context) {
  try {
    return { ...(await queueRows(context, context.words)), away: [] };
  } catch (error) {
    if (!(error instanceof RedisUnavailableError || error instanceof RedisRefusedError)) throw error;
    return { found: [], missing: [], away: [messageFor(error, context.values['cluster'] === true)] };
  }
}

const exporter: Command = {
  name: 'exporter',
  usage: '',
  about: 'serves /metrics and /scale/<queue> for Prometheus and KEDA, until it is stopped',
  words: [0, 0],
  options: {
    port: { type: 'string', about: 'port (default: 9394)' },
    host: { type: 'string', about: 'address to listen on (default: 0.0.0.0)' },
  },
  async run(context) {
    const { inspector, values, print, signal } = context;
    const metrics = new QueueMetrics({ inspector, global: true, local: false });
    const host = (values['host'] as string | undefined) ?? '0.0.0.0';
    const server = new HttpServer({
      port: numberOf(context, 'port', 9394, PORTS),
      host,
      routes: [
        (path, request) => (path === '/metrics' ? metricsAnswer(metrics, request) : undefined),
        (path) => (path === '/live' ? { status: 200, body: { status: 'live' } } : undefined),
        scaleRoute(inspector, undefined),
      ],
    });
    const port = await server.listen().catch(cannotListen);
    const url = urlOf(host, port, 'metrics');
    if (print.isJson) print.jsonLine({ url });
    else print.line(url);
    await stopped(signal);
    await server.close();
    return DONE;
  },
};

/** Running jobs that `top` shows. */
const MOST_RUNNING = 5;
/** Lines of `top` with two queues and without running jobs. */
const LEAST_HEIGHT = 8;
/** Queues that cannot be read that `top` shows. */
const MOST_FAULTS = 3;

const top: Command = {
  name: 'top',
  usage: '[queue…]',
  about: 'shows queues and the jobs that have run longest, refreshed; q ends it',
  words: [0, 1_000],
  options: { interval: { type: 'string', about: 'seconds between two readings (default: 1)' } },
  async run(context) {
    const { signal, print } = context;
    const intervalMs = intervalOf(context, 1);
    const { stdout, env } = process;
    // A dumb terminal, as in an editor, cannot move its cursor.
    if (!stdout.isTTY || env['TERM'] === 'dumb' || print.isJson)
      throw new UsageError('top needs a terminal; use queues --json', '');
    const end = new AbortController();
    const any = AbortSignal.any([signal, end.signal]);
    const isRaw = process.stdin.isTTY;
    emitKeypressEvents(process.stdin);
    if (isRaw) process.stdin.setRawMode(true).resume();
    process.stdin.on('keypress', (_: string, key: { name?: string; ctrl?: boolean }) => {
      if (key.name === 'q' || key.name === 'escape' || (key.ctrl && key.name === 'c')) end.abort();
    });
    // A terminal that is not closed, as in tmux, would stay on the alternate screen.
    process.once('SIGHUP', () => end.abort());
    // Switches to the alternate screen and hides the cursor.
    print.raw('\u001b[?1049h\u001b[?25l');
    try {
      while (!any.aborted) {
        // oxlint-disable-next-line no-await-in-loop -- one read after another
        const text = await page(context, { columns: print.screen.width ?? 80, rows: stdout.rows || 24 });
        print.raw(`\u001b[H\u001b[2J${text}`);
        // oxlint-disable-next-line no-await-in-loop -- the same
        await pause(intervalMs, any);
      }
    } finally {
      print.raw('\u001b[?25h\u001b[?1049l');
      if (isRaw) process.stdin.setRawMode(false);
    }
    return DONE;
  },
};

/** The page of `top` on a terminal of this size. */
export async function page(
  context: Pick<Context, 'inspector' | 'print' | 'prefix' | 'values' | 'words'>,
  { columns, rows: height }: { readonly columns: number; readonly rows: number },
): Promise<string> {
  const { inspector, print, words, prefix } = context;
  const screen = { ...print.screen, width: columns };
  try {
    const { found, rows, workers, missing: texts } = await queueRows(context, words);
    const sum = (state: 'waiting' | 'active' | 'dead') =>
      found.reduce((all, { counts }) => all + counts[state], 0);
    const names = new Set(found.map(({ name }) => name));
    const runs = runsOf(workers)
      .filter(({ queue }) => names.has(queue))
      .slice(0, Math.max(0, Math.min(MOST_RUNNING, height - LEAST_HEIGHT)));
    const missing = texts
      .slice(0, MOST_FAULTS)
      .map((text) => `${print.paint('red', escaped(text).slice(0, columns))}\n`);
    // Besides the rows: the head, two empty lines and the titles of both tables.
    const lines = Math.max(2, height - missing.length - (runs.length > 0 ? runs.length + 6 : 4));
    const cut = rows.length > lines ? `   ${counted(rows.length - lines, 'more queue')}` : '';
    const counts = `   ${sum('waiting')} waiting   ${sum('active')} active   ${sum('dead')} dead${cut}   q ends`;
    const head = `${`godwit ${prefix}`.slice(0, Math.max(6, columns - counts.length))}${counts}`;
    const runRows = runs.map((run) => runRow(run, inspector));
    const running = runs.length > 0 ? `\n${table(RUN_COLUMNS, runRows, screen).text}` : '';
    return `${print.paint('bold', head.slice(0, columns))}\n${missing.join('')}\n${table(QUEUE_COLUMNS, rows.slice(0, lines), screen).text}${running}`;
  } catch (error) {
    return `${print.paint('red', (error as Error).message)}\n`;
  }
}

export const WATCH_COMMANDS: readonly Command[] = [tail, watch, top, health, doctor, exporter];
