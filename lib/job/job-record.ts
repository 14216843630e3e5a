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

/** Options of a single job. All others come from its queue. Compatible with `CheckedJobOptions`. */
export interface RecordOptions {
  readonly attempts?: number;
  readonly backoff?: StoredBackoff | BackoffName;
  readonly timeoutMs?: number;
  readonly retentionMs?: number;
  readonly cancelledRetentionMs?: number;
  readonly expiresInMs?: number;
  readonly priority?: number;
  readonly delayMs?: number;
  readonly dueAt?: number;
  readonly retryForMs?: number;
  readonly deadline?: number;
  /** Whether the call that added the job waits for its end. */
  readonly awaited?: boolean;
  readonly group?: string;
  readonly cost?: number;
  /** Digest of the key of `unique`, `debounce`, `throttle` or `aggregate`. */
  readonly digest?: string;
  /** Whether the key is that of `unique`: then the job does not run again while another job has the key. */
  readonly isUnique?: boolean;
  /** The data is a list of this many items, one per add. */
  readonly items?: number;
  readonly headers?: JobHeaders;
  /** Options that this version does not know, by the names that a newer version stored. */
  readonly unknown?: Readonly<Record<string, unknown>>;
}

/** The options of a job as a worker reads them. */
export interface StoredJobOptions {
  readonly attempts?: number;
  readonly backoff?: StoredBackoff | BackoffName;
  readonly timeoutMs?: number;
  readonly retentionMs?: number;
  readonly expiresInMs?: number;
  readonly priority?: number;
  /** When the job is first due, in ms since 1970; absent if it was due when it was added. */
  readonly runnableAt?: number;
  readonly retryForMs?: number;
  readonly cancelledRetentionMs?: number;
  /** Ms since 1970. */
  readonly deadline?: number;
  /** The call that added the job waits for its end. */
  readonly awaited?: true;
  /** The group of the job. */
  readonly group?: string;
  /** How much the job counts against rates; 1 if absent. */
  readonly cost?: number;
  /** Digest of the unique key that the end of the job frees. */
  readonly digest?: string;
  /** The key is that of `unique`. */
  readonly isUnique?: true;
  /** How many adds the data was collected from; the data is a list with an item for each. */
  readonly items?: number;
  /** Absent if the job has no headers. */
  readonly headers?: JobHeaders;
}

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

/** Short keys: they are stored with every job that has options. New options are stored under their own names, as the user wrote them. */
interface OptionsOnWire {
  items?: number;
  a?: number;
  b?: StoredBackoff;
  t?: number;
  r?: number;
  e?: number;
  p?: number;
  d?: number;
  retryFor?: number;
  retention?: { cancelled?: number };
  deadline?: number;
  awaited?: boolean;
  group?: string;
  cost?: number;
  /** Digest of the key. */
  unique?: string;
  /** The option that set the key. The previous version does not write it. */
  key?: 'unique';
  /** Name of a named backoff. */
  backoff?: string;
  headers?: JobHeaders;
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
  // The JSON is built by hand: all options but the backoff are integers, and JSON.stringify would cost more than the rest of the
  // body.
  let fields = '';
  // First, as scripts look for it there.
  if (options.items !== undefined) fields += `,"items":${options.items}`;
  if (options.attempts !== undefined) fields += `,"a":${options.attempts}`;
  // A named backoff is stored by its name. The previous version cannot read it and uses the backoff of the queue.
  if (options.backoff instanceof BackoffName) fields += `,"backoff":${JSON.stringify(options.backoff)}`;
  else if (options.backoff !== undefined) fields += `,"b":${JSON.stringify(options.backoff)}`;
  if (options.timeoutMs !== undefined) fields += `,"t":${options.timeoutMs}`;
  if (options.retentionMs !== undefined) fields += `,"r":${options.retentionMs}`;
  if (options.expiresInMs !== undefined) fields += `,"e":${options.expiresInMs}`;
  if (options.priority !== undefined) fields += `,"p":${options.priority}`;
  const runnableAt = options.dueAt ?? createdAt + (options.delayMs ?? 0);
  if (runnableAt > createdAt) fields += `,"d":${runnableAt}`;
  if (options.cancelledRetentionMs !== undefined)
    fields += `,"retention":{"cancelled":${options.cancelledRetentionMs}}`;
  if (options.retryForMs !== undefined) fields += `,"retryFor":${options.retryForMs}`;
  if (options.deadline !== undefined) fields += `,"deadline":${options.deadline}`;
  if (options.awaited) fields += ',"awaited":true';
  if (options.group !== undefined) fields += `,"group":${JSON.stringify(options.group)}`;
  if (options.cost !== undefined) fields += `,"cost":${options.cost}`;
  if (options.digest !== undefined) fields += `,"unique":"${options.digest}"`;
  if (options.isUnique) fields += ',"key":"unique"';
  if (options.headers !== undefined) fields += `,"headers":${JSON.stringify(options.headers)}`;
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
  if (change.runnableAt !== undefined) wire.d = change.runnableAt;
  if (change.priority) wire.p = change.priority;
  else if (change.priority === 0) delete wire.p;
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
  delete wire.d;
  delete wire.deadline;
  delete wire.awaited;
  const options = Object.keys(wire).length === 0 ? '' : JSON.stringify(wire);
  return `${name}\n${timeText(Math.floor(nowMs))}\n${options}\n${data}`;
}

/** Unknown fields are ignored, because a newer version may have written them. */
function decodeOptions(text: string): StoredJobOptions | null {
  const wire = JSON.parse(text) as OptionsOnWire | null;
  if (typeof wire !== 'object' || wire === null || Array.isArray(wire)) return null;
  const {
    a,
    b,
    t,
    r,
    e,
    p,
    d,
    retryFor,
    deadline,
    awaited,
    unique,
    key,
    backoff,
    retention,
    group,
    cost,
    items,
  } = wire;
  const headers = wire.headers && storedHeaders(wire.headers);
  if (!(isCount(a) && isCount(t) && isCount(r) && isCount(e) && isCount(p) && isCount(d))) return null;
  const options: { -readonly [K in keyof StoredJobOptions]: StoredJobOptions[K] } = {};
  if (a !== undefined) options.attempts = a;
  if (b !== undefined) options.backoff = storedBackoff(b);
  else if (typeof backoff === 'string') options.backoff = new BackoffName(backoff, backoff);
  if (t !== undefined) options.timeoutMs = t;
  if (r !== undefined) options.retentionMs = r;
  if (e !== undefined) options.expiresInMs = e;
  if (p !== undefined) options.priority = p;
  if (d !== undefined) options.runnableAt = d;
  const cancelled = retention?.cancelled;
  if (isCount(cancelled) && cancelled !== undefined) options.cancelledRetentionMs = cancelled;
  if (isCount(retryFor) && retryFor !== undefined) options.retryForMs = retryFor;
  if (isCount(deadline) && deadline !== undefined) options.deadline = deadline;
  if (awaited === true) options.awaited = true;
  if (typeof group === 'string') options.group = group;
  if (isCount(cost) && cost !== undefined) options.cost = cost;
  if (typeof unique === 'string') options.digest = unique;
  if (key === 'unique') options.isUnique = true;
  if (isCount(items) && items !== undefined) options.items = items;
  if (headers) options.headers = headers;
  return options;
}

function storedBackoff(value: StoredBackoff): StoredBackoff {
  const backoff = checkBackoff(value, 'backoff');
  if (backoff instanceof BackoffName) throw new TypeError('a name under the key of a backoff');
  return backoff as StoredBackoff;
}

/** An absent value is valid too. */
function isCount(value: unknown): boolean {
  return value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0);
}

/** The time in ms since 1970 after which a job is too old to start. It is counted from the time when the job was first due. */
export function expiresAt(body: DecodedBody, expiresInMs: number | undefined): number | undefined {
  return expiresInMs === undefined ? undefined : (body.options.runnableAt ?? body.createdAt) + expiresInMs;
}
