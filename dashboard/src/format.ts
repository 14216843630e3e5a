import type { Percentiles } from '../../lib/subpaths/dashboard/series.js';
import { span, withUnit } from '../../lib/subpaths/dashboard/time-text.js';
import { zone } from './state.js';

export { micros, span } from '../../lib/subpaths/dashboard/time-text.js';

/** Numbers and times as text. */

const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });

export const count = (value: number): string => whole.format(value);
export const compact = (value: number): string =>
  Math.abs(value) < 10_000 ? whole.format(value) : short.format(value);

/** One unit, for estimates: `340 ms`, `1.7 s`, `3.4 min`. */
function about(ms: number): string {
  const [name, size] = LARGE.find(([, size]) => ms >= size) ?? [];
  return name === undefined ? span(ms) : withUnit(short.format(ms / size), name);
}

const LARGE = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const;

/** The estimated 50th, 95th and 99th percentile: `≈ 3 ms · 20 ms · 1.2 s`, or `≈ 3 · 20 · 90 ms`. */
export function percentiles(of: Percentiles<number | null> | null | undefined): string {
  const all = of ? [of.p50, of.p95, of.p99] : [];
  if (all.every((ms) => ms === null)) return '–';
  const texts = all.map((ms) => about(ms ?? 0));
  const [unit = ''] = /\u00a0\D+$/.exec(texts[0]!) ?? [];
  const isShared = unit !== '' && texts.every((text) => text.endsWith(unit));
  const shown = isShared
    ? [...texts.slice(0, -1).map((text) => text.slice(0, -unit.length)), texts.at(-1)]
    : texts;
  return `≈\u00a0${shown.join(' · ')}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** A duration as options take it: `1s`, `10m`, `1500ms`. */
export function duration(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms > 0 && ms % size === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

export function bytes(size: number): string {
  if (size < 1_024) return `${size} B`;
  return size < 1_048_576 ? `${(size / 1_024).toFixed(1)} KiB` : `${(size / 1_048_576).toFixed(1)} MiB`;
}

const formatters = new Map<string, Intl.DateTimeFormat>();

/** A time in the chosen zone. A formatter is kept, because making one takes longer than a hundred uses of it. */
function time(ms: number, day: Intl.DateTimeFormatOptions, hasSeconds = true): string {
  const options: Intl.DateTimeFormatOptions = {
    ...day,
    hour: '2-digit',
    minute: '2-digit',
    ...(hasSeconds && { second: '2-digit' }),
    hourCycle: 'h23',
    timeZone: zone.value.value === 'UTC' ? 'UTC' : undefined,
  };
  const key = JSON.stringify(options);
  const formatter = formatters.get(key) ?? new Intl.DateTimeFormat(undefined, options);
  formatters.set(key, formatter);
  return formatter.format(ms);
}

export function moment(ms: number, isFull = true): string {
  return time(ms, isFull ? { year: 'numeric', month: 'short', day: '2-digit' } : {});
}

export function axisTime(ms: number, hasDay: boolean, hasSeconds: boolean): string {
  return time(ms, hasDay ? { weekday: 'short' } : {}, hasSeconds);
}

/** `5 s ago`, `in 3 min`. */
export function relative(ms: number, now: number): string {
  const distance = now - ms;
  if (Math.abs(distance) < 1_000) return 'now';
  return distance > 0 ? `${span(distance)} ago` : `in ${span(distance)}`;
}

export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** `50 per second`, `50 in 10 s`. */
export function perTime(value: number, perMs: number): string {
  const name = PER[perMs];
  return name === undefined ? `${count(value)} in ${span(perMs)}` : `${count(value)} per ${name}`;
}

const PER: Readonly<Record<number, string>> = { 1_000: 'second', 60_000: 'minute', 3_600_000: 'hour' };

/** They change the direction of the text after them, or have no width. */
const HIDDEN = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u00ad\u180e\u200b\u2060\ufeff]/g;
const BLANK = /^[\p{Cf}\p{Z}]+$/u;

/**
 * Hidden characters as escapes. One that changes the direction in a name would also reverse the words around the name. In a text of
 * nothing but blanks, all are escapes, except if they are spaces: these stand between the parts of a page.
 */
export function visible(text: string): string {
  const signs = BLANK.test(text) && /[^ ]/.test(text) ? /./gu : HIDDEN;
  return text.replace(signs, (sign) => `\\u${sign.codePointAt(0)!.toString(16).padStart(4, '0')}`);
}
