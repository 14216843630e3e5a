import { escaped } from '../errors/show.js';

/** Longest id or job name in UTF-8 bytes. */
const MAX_BYTES = 255;

/**
 * Why a text cannot be an id or a job name, as a phrase for the error message; `undefined` if it can. Control characters would
 * break lines in logs and in the store, and lone surrogates would all become the same character there. All other Unicode is kept
 * byte by byte: case and composed or decomposed forms stay different.
 */
export function faultOfText(text: unknown, maxBytes = MAX_BYTES): string | undefined {
  if (typeof text !== 'string') return 'is not a string';
  const length = text.length;
  if (length === 0) return 'is empty';
  if (length > maxBytes) return tooLong(text);
  for (let at = 0; at < length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || unit > 0x7e) return faultOfWideText(text, at, maxBytes);
  }
  return undefined;
}

/** Like `faultOfText`, starting at the first UTF-16 unit that is not printable ASCII. */
function faultOfWideText(text: string, from: number, maxBytes: number): string | undefined {
  let bytes = from;
  for (let at = from; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || (unit >= 0x7f && unit <= 0x9f))
      return `holds the control character ${hex(unit)} at position ${at}`;
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (unit < 0xd800 || unit > 0xdfff) bytes += 3;
    else if (isPair(text, at)) {
      bytes += 4;
      at++;
    } else return `holds the lone surrogate ${hex(unit)} at position ${at}`;
  }
  return bytes > maxBytes ? tooLong(text) : undefined;
}

function isPair(text: string, at: number): boolean {
  const low = text.charCodeAt(at + 1);
  return text.charCodeAt(at) <= 0xdbff && low >= 0xdc00 && low <= 0xdfff;
}

function tooLong(text: string): string {
  return `is ${Buffer.byteLength(text)} bytes long`;
}

function hex(unit: number): string {
  return `U+${unit.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A text in quotes that is safe in a message or a log line: JSON does not escape line separators and direction marks. */
export function quoted(text: string): string {
  return escaped(JSON.stringify(text));
}

/** `1 job`, `2 jobs`. */
export function counted(count: number, noun: string, many = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : many}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** `queue 'a'`, `queues 'a' and 'b'`. */
export function namedQueues(queues: readonly string[]): string {
  return `${queues.length === 1 ? 'queue' : 'queues'} ${listed(queues.map((queue) => `'${queue}'`))}`;
}

/** How log lines call a job. The id is quoted, because it may contain anything. */
export function jobText(queue: string, id: string): string {
  return `job ${quoted(id)} of queue '${queue}'`;
}

const MAX_KEY = 60;

/** The path of a value in errors; a function if many values are checked and few paths are needed. */
export type Path = string | (() => string);

export function pathText(path: Path): string {
  return typeof path === 'string' ? path : path();
}

/** The path of the data of a job. */
export function dataPath(path: Path): Path {
  return typeof path === 'string' ? `${path}.data` : () => `${path()}.data`;
}

/** One step of a path: `.name`, `[3]`, or `["any text"]`, escaped so that it cannot forge a log line. */
export function pathStep(key: string | number): string {
  if (typeof key === 'number') return `[${key}]`;
  const short = key.length > MAX_KEY ? `${key.slice(0, MAX_KEY - 3)}...` : key;
  if (/^[A-Za-z_$][\w$]*$/.test(key)) return `.${short}`;
  return `[${quoted(short)}]`;
}

/** Null also if the text is not JSON. */
export function parseOrNull(text: string | null): unknown {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The queue, name, group or shared limit of a field (`LimitField`), for a message. */
export function whose(field: string): string {
  const name = quoted(field.slice(2));
  if (field.startsWith('n:')) return `name ${name}`;
  if (field.startsWith('s:')) return `the shared limit ${name}`;
  return field.startsWith('g:') ? `group ${name}` : 'the queue';
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** `250 ms`, `4 s`, `1.5 h`: at most one decimal. */
export function shortTime(ms: number): string {
  const [unit, length] = UNITS.find((one) => ms >= one[1]) ?? ['ms', 1];
  return `${Math.round((ms / length) * 10) / 10} ${unit}`;
}
