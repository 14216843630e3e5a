import { BackoffName, checkBackoff, type StoredBackoff } from './backoff.js';
import { storedHeaders, type JobHeaders } from './headers.js';
import { timeText } from './job-id.js';

/**
 * The body of a job is four lines: its name (which scripts read for events), when it was added (ms in base 36), its own options
 * as JSON or an empty line, its data as JSON or an empty line. Names have no line breaks, and JSON text has none outside strings.
 * Data that begins with `~` is encoded by the codec whose name follows, up to a colon; this version has no codecs. Changing a job
 * replaces whole lines, so fields and codecs of other versions are preserved.
 */

/** The stored data of a job without data, whose handler gets undefined. It cannot be confused with JSON, which is never empty. */
export const NO_DATA = '';

/** An option in the JSON of a body: its key, how its value is written, and how it is read. */
interface StoredOption<T> {
  readonly key: string;
  write(value: T): string;
  /** Undefined for a value that this version does not know: it is ignored. A throw makes the body malformed. */
  read(value: unknown): T | undefined;
}

const ofCount = (key: string): StoredOption<number> => ({ key, write: String, read: countIn });
/** Without a valid value, the body is malformed. */
const needed = (key: string): StoredOption<number> => ({ ...ofCount(key), read: neededCount });
const ofText = (key: string): StoredOption<string> => ({
  key,
  write: JSON.stringify,
  read: (value) => (typeof value === 'string' ? value : undefined),
});
/** Stored as this word, or not at all. */
const ofWord = (key: string, word: unknown): StoredOption<true> => ({
  key,
  write: () => JSON.stringify(word),
  read: (value) => (value === word ? true : undefined),
});

/**
 * The stored options of a job, in the order in which they are written. Short keys: they are stored with every job that has options.
 * New options are stored under their own names, as the user wrote them.
 */
const STORED = {
  /** The data is a list of this many items, one per add. First, as scripts look for it there. */
  items: ofCount('items'),
  attempts: needed('a'),
  timeoutMs: needed('t'),
  retentionMs: needed('r'),
  expiresInMs: needed('e'),
  priority: needed('p'),
  /** When the job is first due, in ms since 1970; absent if it was due when it was added. */
  runnableAt: needed('d'),
  cancelledRetentionMs: {
    key: 'retention',
    write: (cancelled: number) => `{"cancelled":${cancelled}}`,
    read: (value: { readonly cancelled?: unknown } | null) => countIn(value?.cancelled),
  } as StoredOption<number>,
  retryForMs: ofCount('retryFor'),
  /** Ms since 1970. */
  deadline: ofCount('deadline'),
  /** The call that added the job waits for its end. */
  awaited: ofWord('awaited', true),
  group: ofText('group'),
  /** How much the job counts against rates; 1 if absent. */
  cost: ofCount('cost'),
  /** Digest of the key of `unique`, `debounce`, `throttle` or `aggregate`, which the end of the job frees. */
  digest: ofText('unique'),
  /** The key is that of `unique`: then the job does not run again while another job has the key. */
  isUnique: ofWord('key', 'unique'),
  headers: { key: 'headers', write: JSON.stringify, read: storedHeaders } as StoredOption<JobHeaders>,
};

/** The options of a single job as a worker reads them. All others come from its queue. */
export type StoredJobOptions = {
  readonly [Name in keyof typeof STORED]?: (typeof STORED)[Name] extends StoredOption<infer T> ? T : never;
} & { readonly backoff?: StoredBackoff | BackoffName };

/** The options of a new job. Compatible with `CheckedJobOptions`. */
export interface RecordOptions extends Omit<StoredJobOptions, 'runnableAt'> {
  readonly delayMs?: number;
  readonly dueAt?: number;
  /** Options that this version does not know, by the names that a newer version stored. */
  readonly unknown?: Readonly<Record<string, unknown>>;
}

/** The options by their keys. */
const BY_KEY: ReadonlyMap<string, readonly [name: string, option: StoredOption<any>]> = new Map(
  Object.entries(STORED).map(([name, option]) => [option.key, [name, option]]),
);

/** The options line of a body, by the keys of `STORED`. */
type OptionsOnWire = Record<string, unknown>;

export interface DecodedBody {
  readonly name: string;
  /** Ms since 1970. */
  readonly createdAt: number;
  readonly options: StoredJobOptions;
  /** Undefined if the job has no data, or if a codec encodes it. */
  readonly data: unknown;
  /** The codec of the data, such as `~z`; absent for JSON. */
  readonly codec?: string;
}

/** The options of a job without options: one shared object, so that `===` recognises it. */
export const NO_OPTIONS: RecordOptions & StoredJobOptions = Object.freeze({});

let lastCreatedAt = -1;
let lastName = '';
/** Name and time of the last encoded body. Many jobs of one name are added in the same millisecond, so they are reused. */
let lastHead = '';

/**
 * Encodes the body of a job. The name must have been checked, and `dataJson` must be a result of `encodePayload` or `NO_DATA`.
 *
 * @param nowMs when it is added, ms since 1970; fractions, as of a corrected clock, are dropped.
 */
export function encodeBody(name: string, nowMs: number, options: RecordOptions, dataJson: string): string {
  const createdAt = Math.floor(nowMs);
  if (createdAt !== lastCreatedAt || name !== lastName) {
    lastCreatedAt = createdAt;
    lastName = name;
    lastHead = `${name}\n${timeText(createdAt)}\n`;
  }
  const fields = options === NO_OPTIONS ? '' : encodeOptions(createdAt, options);
  return `${lastHead}${fields}\n${dataJson}`;
}

function encodeOptions(createdAt: number, options: RecordOptions): string {
  // The JSON is built by hand: nearly all options are integers, and JSON.stringify would cost more than the rest of the body.
  // Scripts look for `items` at the start.
  let fields = options.items === undefined ? '' : `,"${STORED.items.key}":${options.items}`;
  for (const name in options) {
    const option: StoredOption<any> | undefined = name === 'items' ? undefined : STORED[name as 'cost'];
    const value = option && options[name as 'cost'];
    if (value !== undefined) fields += `,"${option!.key}":${option!.write(value)}`;
  }
  // A named backoff is stored by its name. The previous version cannot read it and uses the backoff of the queue.
  if (options.backoff !== undefined)
    fields += `,"${options.backoff instanceof BackoffName ? 'backoff' : 'b'}":${JSON.stringify(options.backoff)}`;
  const runnableAt = options.dueAt ?? createdAt + (options.delayMs ?? 0);
  if (runnableAt > createdAt) fields += `,"${STORED.runnableAt.key}":${runnableAt}`;
  if (options.unknown !== undefined) fields += `,${JSON.stringify(options.unknown).slice(1, -1)}`;
  return fields === '' ? '' : `{${fields.slice(1)}}`;
}

/** Decodes a body; `null` if it is malformed. Never throws. */
export function decodeBody(body: string): DecodedBody | null {
  const nameEnd = body.indexOf('\n');
  const timeEnd = body.indexOf('\n', nameEnd + 1);
  const optionsEnd = body.indexOf('\n', timeEnd + 1);
  if (nameEnd <= 0 || timeEnd < 0 || optionsEnd < 0) return null;
  const createdAt = decodeTime(body, nameEnd + 1, timeEnd);
  if (createdAt < 0) return null;
  try {
    const options =
      optionsEnd === timeEnd + 1 ? NO_OPTIONS : decodeOptions(body.slice(timeEnd + 1, optionsEnd));
    if (options === null) return null;
    const name = body.slice(0, nameEnd);
    if (optionsEnd + 1 === body.length) return { name, createdAt, options, data: undefined };
    if (body[optionsEnd + 1] === '~')
      return { name, createdAt, options, data: undefined, codec: codecOf(body, optionsEnd + 1) };
    return { name, createdAt, options, data: JSON.parse(body.slice(optionsEnd + 1)) };
  } catch {
    return null;
  }
}

/** The data of a body, as it is stored. */
export function dataTextOf(body: string): string {
  return body.slice(/^[^\n]*\n[^\n]*\n[^\n]*\n/.exec(body)?.[0].length ?? body.length);
}

function codecOf(body: string, at: number): string {
  const colon = body.indexOf(':', at);
  return body.slice(at, colon < 0 ? at + 32 : Math.min(colon, at + 32));
}

/** A base 36 number between two positions; -1 if it is malformed, which `parseInt` would not report. */
function decodeTime(body: string, from: number, end: number): number {
  if (from === end) return -1;
  let time = 0;
  for (let at = from; at < end; at++) {
    const unit = body.charCodeAt(at);
    if (unit >= 0x30 && unit <= 0x39) time = time * 36 + unit - 0x30;
    else if (unit >= 0x61 && unit <= 0x7a) time = time * 36 + unit - 0x61 + 10;
    else return -1;
  }
  return time <= Number.MAX_SAFE_INTEGER ? time : -1;
}

/** The options line of a body; null if the body is malformed. */
export function optionsLineOf(body: string): string | null {
  return /^[^\n]+\n[^\n]+\n([^\n]*)\n/.exec(body)?.[1] ?? null;
}

/**
 * The options line with another due time or priority. All other options stay, including those that this version does not know.
 */
export function changeOptions(line: string, change: { priority?: number; runnableAt?: number }): string {
  const wire = (line === '' ? {} : JSON.parse(line)) as OptionsOnWire;
  if (change.runnableAt !== undefined) wire['d'] = change.runnableAt;
  if (change.priority) wire['p'] = change.priority;
  else if (change.priority === 0) delete wire['p'];
  return Object.keys(wire).length === 0 ? '' : JSON.stringify(wire);
}

/** The body with another options line or data line. The body must not be malformed. */
export function withLines(body: string, options: string | undefined, data: string | undefined): string {
  const [, head, oldOptions, oldData] = /^([^\n]+\n[^\n]+\n)([^\n]*)\n([^]*)$/.exec(body)!;
  return `${head}${options ?? oldOptions}\n${data ?? oldData}`;
}

/**
 * The body of a job that is added again, as if it were added now. It has no delay and no deadline, because those were meant for
 * the first time. The body must not be malformed.
 */
export function bodyAgain(body: string, nowMs: number): string {
  const [, name, line, data] = /^([^\n]+)\n[^\n]+\n([^\n]*)\n([^]*)$/.exec(body)!;
  const wire = JSON.parse(line || '{}') as OptionsOnWire;
  delete wire['d'];
  delete wire['deadline'];
  delete wire['awaited'];
  const options = Object.keys(wire).length === 0 ? '' : JSON.stringify(wire);
  return `${name}\n${timeText(Math.floor(nowMs))}\n${options}\n${data}`;
}

/** Unknown fields are ignored, because a newer version may have written them. Throws if the body is malformed. */
function decodeOptions(text: string): StoredJobOptions | null {
  const wire = JSON.parse(text) as OptionsOnWire | null;
  if (typeof wire !== 'object' || wire === null || Array.isArray(wire)) return null;
  const options: Record<string, unknown> = {};
  for (const key in wire) {
    const [name, option] = BY_KEY.get(key) ?? [];
    const value = option?.read(wire[key]);
    if (value !== undefined) options[name!] = value;
  }
  const { b, backoff } = wire;
  if (b !== undefined) options['backoff'] = storedBackoff(b as StoredBackoff);
  else if (typeof backoff === 'string') options['backoff'] = new BackoffName(backoff, backoff);
  return options;
}

function storedBackoff(value: StoredBackoff): StoredBackoff {
  const backoff = checkBackoff(value, 'backoff');
  if (backoff instanceof BackoffName) throw new TypeError('a name under the key of a backoff');
  return backoff as StoredBackoff;
}

function countIn(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

function neededCount(value: unknown): number {
  const count = countIn(value);
  if (count === undefined) throw new TypeError('not a number');
  return count;
}

/** The time in ms since 1970 after which a job is too old to start. It is counted from the time when the job was first due. */
export function expiresAt(body: DecodedBody, expiresInMs: number | undefined): number | undefined {
  return expiresInMs === undefined ? undefined : (body.options.runnableAt ?? body.createdAt) + expiresInMs;
}
