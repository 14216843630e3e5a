import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import { once } from 'node:events';
import { escaped } from '../../errors/show.js';
import { reasonsOf } from '../../inspect/queue-inspector.js';
import { readDuration } from '../../job/duration.js';
import { JsonText } from '../../job/payload.js';
import type { Inspector } from '../inspector.js';
import { columnsOf, cutTo } from './columns.js';
import { age, paint, table, type Cell, type Column, type Screen } from './table.js';
import type { Output } from './output.js';
import { DONE, FAILED, StoppedError } from './failure.js';
import { UsageError } from './usage-error.js';

/** A shorter piece of a text is not readable. */
const LEAST_ROOM = 10;

/** For a `UsageError` that needs no usage text. */
const NO_USAGE = ' ';

interface OptionType {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly about: string;
  /** Whether the value is a duration. */
  readonly isDuration?: boolean;
}

/** An option that is a duration. */
export const duration = (about: string) => ({ type: 'string', about, isDuration: true }) as const;

/** A subcommand of `godwit` that uses Redis. */
export interface Command {
  readonly name: string;
  /** The arguments after the name of the command: `<queue> [id…]`. */
  readonly usage: string;
  readonly about: string;
  readonly options?: Readonly<Record<string, OptionType>>;
  /** How many words may follow the name, at least and at most. */
  readonly words: readonly [least: number, most: number];
  run(context: Context): Promise<number>;
}

/** The arguments of a command. */
export interface Context {
  readonly words: readonly string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  /** Changes made through it are recorded. */
  readonly inspector: Inspector;
  /** The actor of recorded actions. */
  readonly actor: string;
  readonly print: Printer;
  readonly url: string;
  readonly prefix: string;
  /** Aborted by SIGINT, by SIGTERM, and when the reader of the output is gone. */
  readonly signal: AbortSignal;
}

/** The output of a command: text for people, or one JSON document. */
export class Printer {
  constructor(
    private readonly output: Output,
    readonly screen: Screen,
    readonly isJson: boolean,
    private readonly isYes: boolean,
    private readonly isQuiet: boolean,
  ) {}

  /** @param json what `--json` prints instead of the table. */
  rows(json: unknown, columns: readonly Column[], rows: readonly (readonly Cell[])[], none: string): void {
    if (this.isJson) return this.json(json);
    if (rows.length === 0) return this.line(none);
    const { text, left } = table(columns, rows, this.screen);
    this.output.print(text);
    if (left.length > 0) this.line(this.paint('dim', `no room for ${left.join(', ')}`));
  }

  json(value: unknown): void {
    this.output.print(`${exactText(value, 2)}\n`);
  }

  /** Prints an object on one line, for endless output. */
  jsonLine(value: unknown): void {
    this.output.print(`${exactText(value)}\n`);
  }

  /** For people; nothing with `--json` or `--quiet`. */
  line(text: string): void {
    if (!this.isJson && !this.isQuiet) this.output.print(`${text}\n`);
  }

  /** Says on a terminal how far a long command is, in place of what it said before. An empty text removes it. */
  progress(text: string): void {
    if (process.stderr.isTTY && !this.isQuiet) process.stderr.write(`\r\u001b[K${text}`);
  }

  /** Prints a line that is cut at the width of the screen. Its second part may contain foreign text. */
  safeLine(head: string, rest: string): void {
    const { width } = this.screen;
    const clean = escaped(rest);
    // Without its colours, the head is about 40 characters wide.
    const room = width === undefined ? Infinity : Math.max(20, width - 42);
    this.output.print(`${head}  ${cutTo(clean, room)}\n`);
  }

  /**
   * Prints a line with foreign text. Its last part is cut at the width of the screen, or left out if there is no room.
   *
   * @param head may contain colours, so its width is given.
   */
  eventLine(head: string, headWidth: number, text: string, last: string): void {
    const { width } = this.screen;
    const clean = escaped(text);
    const room = width === undefined ? Infinity : width - headWidth - columnsOf(clean) - 4;
    const cut = room < LEAST_ROOM ? '' : `  ${cutTo(escaped(last), room)}`;
    this.output.print(`${head}  ${clean}${cut}`.trimEnd() + '\n');
  }

  /** Prints to the error output what is missing in the output. Returns the exit code of the command. */
  unreadable(texts: readonly string[]): number {
    for (const text of texts) this.output.complain('GODWIT_UNREADABLE', text);
    return texts.length === 0 ? DONE : FAILED;
  }

  /** Prints text unchanged, such as a page that other programs read. */
  raw(text: string): void {
    this.output.print(text);
  }

  /** Reports what was done: as a sentence for people, or as an object for programs. */
  done(text: string, json: object): void {
    if (this.isJson) this.json(json);
    else this.line(text);
  }

  paint(style: Parameters<typeof paint>[0], text: string): string {
    return paint(style, text, this.screen.color);
  }

  /**
   * Asks for confirmation; `--yes` confirms without asking.
   *
   * @throws {UsageError} without a terminal and without `--yes`.
   * @throws {StoppedError} at Ctrl-C.
   */
  async confirm(question: string): Promise<boolean> {
    if (this.isYes) return true;
    if (!process.stdin.isTTY)
      throw new UsageError(`${question} Add --yes to do it without a terminal`, NO_USAGE);
    const asking = createInterface({ input: process.stdin, output: process.stderr });
    const stop = new AbortController();
    asking.once('SIGINT', () => stop.abort());
    try {
      return /^y(es)?$/i.test((await asking.question(`${question} [y/N] `, { signal: stop.signal })).trim());
    } catch (error) {
      if ((error as Error).name !== 'AbortError') throw error;
      process.stderr.write('\n');
      if (stop.signal.aborted) throw new StoppedError();
      // Ctrl-D.
      return false;
    } finally {
      asking.close();
    }
  }
}

/** How long ago this was, by the clock of Redis, which also wrote the time. The clock of this machine may differ. */
export function ageOf(at: Date, { producer }: Pick<Inspector, 'producer'>): string {
  return age(producer.engine.now() - at.getTime());
}

/** Why queues are missing, one text for each reason. */
export function faultTexts(faults: ReadonlyMap<string, Error>): string[] {
  return reasonsOf(faults).map(({ reason, queues }) => `${queues} cannot be read: ${reason}`);
}

/** Resolves when the signal is aborted. */
export async function stopped(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

/** The URL of a server that listens on this address. */
export function urlOf(host: string, port: number, path: string): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}/${path}`;
}

export const MANY = 999_999_999;
export const PORTS = [0, 65_535] as const;

/** The whole number in an option. */
export function numberOf(
  { values }: Context,
  name: string,
  otherwise: number,
  range?: readonly [min: number, max: number],
): number {
  const given = values[name];
  if (given === undefined) return otherwise;
  const number = typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
  const [min, max] = range ?? [0, MANY];
  if (number >= min && number <= max) return number;
  const bounds = range ? ` from ${min} to ${max}` : '';
  throw new UsageError(`--${name} must be a whole number${bounds}, got ${JSON.stringify(given)}`, '');
}

/**
 * In code a number is milliseconds, but nobody means 2 ms with `--older-than 2`. So only 0 may have no unit.
 *
 * @throws {UsageError}
 */
export function checkDuration(text: string, what: string): void {
  if (/^ *0+ *$/.test(text) || /^-?(\d+\.?\d*|\.\d+) *[a-z]+$/i.test(text)) return;
  throw new UsageError(
    `${what} must be a duration with a unit, such as 10m or 2h, got ${JSON.stringify(text.slice(0, 100))}`,
    '',
  );
}

/** The option `--rate`: a number per time, such as `50/s` or `100/5m`. Undefined if it is not given. */
export function rateOf({ values }: Context): { max: number; per: number } | undefined {
  const text = values['rate'];
  if (text === undefined) return undefined;
  const [, max, time = ''] = /^(\d{1,10})\/(\S+)$/.exec(String(text)) ?? [];
  const per = readDuration(/^\d/.test(time) ? time : `1${time}`);
  if (max !== undefined && per !== undefined) return { max: Number(max), per };
  throw new UsageError(
    `--rate must be a number per time, such as 50/s or 100/5m, got ${JSON.stringify(text)}`,
    '',
  );
}

/** The given ones of these options, with camel-case names. */
export function given({ values }: Context, ...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = values[name];
      const key = name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
      return typeof value === 'string' ? [[key, value]] : [];
    }),
  );
}

/** JSON whose numbers are those of the stored data, where JavaScript would write them in another way. */
function exactText(value: unknown, spaces?: number): string {
  const mark = randomUUID();
  const texts: string[] = [];
  const json = JSON.stringify(
    value,
    function (this: Readonly<Record<string, unknown>>, key, plain: unknown) {
      const own = this[key];
      // Other data is printed with line breaks, as the rest.
      if (!(own instanceof JsonText) || own.text === JSON.stringify(plain)) return plain;
      return `${mark}${texts.push(own.text) - 1}`;
    },
    spaces,
  );
  return texts.length === 0
    ? json
    : json.replaceAll(new RegExp(`"${mark}(\\d+)"`, 'g'), (_, at: string) => texts[Number(at)]!);
}
