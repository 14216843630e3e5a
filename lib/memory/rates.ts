import type { BreakerRule, LimitRule, RateRule } from '../contract/limit-verbs.js';
import { RULES } from '../job/rules.js';

// The same as `shared/rates.lua`, with the same texts.

/** How many jobs a limit lets start now, and when it lets more start. */
export interface Room {
  /** How many jobs. */
  readonly left: number;
  /** If none may start, in how many ms the next may. */
  readonly nextMs: number;
  /** How much they may cost together by the rate. A bucket may owe the cost of its last job. */
  readonly costLeft: number;
}

export function rateLeft(rate: RateRule, text: string, now: number): Room {
  if (rate.window === 'fixed') {
    const { start, count } = windowIn(rate, text, now);
    const costLeft = rate.max - count;
    return { left: Math.floor(costLeft), nextMs: start + rate.per - now, costLeft };
  }
  if (rate.window === 'bucket') {
    const each = rate.per / rate.max;
    const { arrival } = bucketIn(rate, text, now);
    return {
      left: Math.floor(rate.burst + (now - Math.max(now, arrival)) / each + 0.000001),
      nextMs: arrival + (1 - rate.burst) * each - now,
      costLeft: Infinity,
    };
  }
  const { used, kept, width, nextAt } = slicesIn(rate, text, now);
  const left = Math.floor(rate.max - used + 0.000001);
  const { last, count } = lastSlice(kept);
  const pacedAt = isPaced(rate) ? last * width + (count * 0.5 * rate.per) / rate.max : 0;
  if (now < pacedAt) {
    const nextMs = (left < 1 ? Math.max(nextAt, pacedAt) : pacedAt) - now;
    return { left: 0, nextMs, costLeft: left };
  }
  return { left: Math.min(left, rate.burst), nextMs: nextAt - now, costLeft: left };
}

/** The state after `count` more starts. */
export function rateCharged(rate: RateRule, text: string, now: number, count: number, at = now): string {
  if (rate.window === 'fixed') {
    const { start, count: before } = windowIn(rate, text, now);
    // The window that counted them is over.
    if (count < 0 && at < start) return text;
    return `${start.toFixed(3)} ${Math.max(0, before + count)}`;
  }
  if (rate.window === 'bucket') {
    const { arrival, refilled } = bucketIn(rate, text, now);
    // The bucket has refilled since. Giving starts back as well would grant them twice.
    if (count < 0 && at < refilled) return text;
    const from = count > 0 ? Math.max(now, arrival) : arrival;
    const isRefilled = count > 0 && 2 * rateLeft(rate, text, now).left > rate.burst;
    const next = Math.max(0, Math.min(from + (count * rate.per) / rate.max, latestIn(rate, now)));
    return `${next.toFixed(3)}${isRefilled ? now : refilled}`;
  }
  const { used, kept, current } = slicesIn(rate, text, now);
  if (count < 0) {
    const slice = Math.floor((at * slicesOf(rate)) / rate.per);
    const { rest, back } = takenBack(kept, slice, Math.min(-count, used));
    return `${used - back}${rest}`;
  }
  const { before, last, count: its } = lastSlice(kept);
  const slice = last < current ? `${kept} ${current}:${count}` : `${before} ${last}:${its + count}`;
  return `${used + count}${slice}`;
}

/** Takes back starts that were counted in this slice, or if there are fewer, in earlier ones. */
function takenBack(kept: string, at: number, count: number): { rest: string; back: number } {
  let [rest, after, back] = [kept, '', 0];
  while (back < count && rest !== '') {
    const { before, last, count: its } = lastSlice(rest);
    const some = last <= at ? Math.max(0, Math.min(its, count - back)) : 0;
    if (some !== its) after = ` ${last}:${its - some}${after}`;
    rest = before;
    back += some;
  }
  return { rest: rest + after, back };
}

/** When this state is no longer needed. */
export function rateOverAt(rate: RateRule, text: string, now: number): number {
  if (rate.window === 'bucket') return Math.max(now, bucketIn(rate, text, now).arrival);
  const keptUntil = now + 1.01 * rate.per;
  if (rate.window === 'fixed') return Math.min(keptUntil, (parseFloat(text) || 0) + rate.per);
  const { kept, width } = slicesIn(rate, text, now);
  return Math.min(keptUntil, lastSlice(kept).last * width + keptUntil - now);
}

function isPaced({ window, burst, max }: RateRule): boolean {
  return window === 'sliding' && burst < max;
}

function slicesOf(rate: RateRule): number {
  return isPaced(rate) ? RULES.pacedSlices : RULES.slices;
}

function slicesIn(rate: RateRule, text: string, now: number) {
  const slices = slicesOf(rate);
  const width = rate.per / slices;
  const current = Math.floor((now * slices) / rate.per);
  const [sum, ...all] = text.split(' ');
  const first = all.findIndex((slice) => Math.abs(parseInt(slice) - current) <= slices);
  if (first < 0) return { used: 0, kept: '', current, width, nextAt: 0 };
  const over = all.slice(0, first).reduce((count, slice) => count + countOf(slice), 0);
  const nextAt = (parseInt(all[first]!) + slices + 1) * width;
  return { used: Number(sum) - over, kept: ` ${all.slice(first).join(' ')}`, current, width, nextAt };
}

/** All slices but the last, the last one, and its starts. */
function lastSlice(kept: string): { before: string; last: number; count: number } {
  const at = kept.lastIndexOf(' ');
  if (at < 0) return { before: '', last: 0, count: 0 };
  const slice = kept.slice(at + 1);
  return { before: kept.slice(0, at), last: parseInt(slice), count: countOf(slice) };
}

function countOf(slice: string): number {
  return Number(slice.split(':')[1]);
}

function windowIn(rate: RateRule, text: string, now: number): { start: number; count: number } {
  const [start, count] = text.split(' ').map(Number);
  // The rule may have had another window when the text was written.
  if (count === undefined || !(start! <= now && now < start! + rate.per)) return { start: now, count: 0 };
  return { start: start!, count };
}

/** The arrival time of the next start, and when a start last found more than half of the burst. */
function bucketIn(rate: RateRule, text: string, now: number): { arrival: number; refilled: number } {
  const [, arrival, refilled] = /^(\d+\.\d{3})(\d*)$/.exec(text) ?? [];
  // If it is later than possible, another rule wrote it, or the clock was set back.
  const isPossible = Number(arrival) < latestIn(rate, now) + 1;
  return { arrival: isPossible ? Number(arrival) : 0, refilled: Number(refilled ?? 0) };
}

/** The latest arrival time that starts can lead to: now, and the time that the whole burst and one more job take. */
function latestIn(rate: RateRule, now: number): number {
  return now + rate.per * (1 + rate.burst / rate.max);
}

/** How much of a limit is used: until when nothing starts, and the state of its rate. */
export interface LimitUse {
  readonly blocked: number;
  readonly rate: string;
  /** State of the breaker: `!` if it is open, `?` if probe jobs have started. */
  readonly mark: '' | '!' | '?';
  /** When the next probe jobs may start. */
  readonly till: number;
}

export const UNUSED: LimitUse = { blocked: 0, rate: '', mark: '', till: 0 };

const UNLIMITED: Room = { left: Infinity, nextMs: 0, costLeft: Infinity };

/** Whether the next probe jobs must wait. If the time is later than possible, the clock was set back. */
export function isOpen({ openFor }: BreakerRule, till: number, now: number): boolean {
  return till > now && till <= now + openFor;
}

/** How many jobs may start by the rate, a block and a breaker. */
export function roomOf(rule: LimitRule, use: LimitUse, now: number): Room {
  const { breaker } = rule;
  const isProbed = breaker && use.mark !== '';
  const blocked = isProbed && isOpen(breaker, use.till, now) ? Math.max(use.blocked, use.till) : use.blocked;
  const { left, nextMs, costLeft } = rule.rate ? rateLeft(rule.rate, use.rate, now) : UNLIMITED;
  // A hold may be over before the rate lets a job start.
  if (blocked > now) return { left: 0, nextMs: Math.max(blocked - now, left < 1 ? nextMs : 0), costLeft: 0 };
  const most = isProbed ? breaker.probes : Infinity;
  return { left: Math.min(most, Math.max(0, left)), nextMs, costLeft };
}

/** Whether a job of this cost may start after jobs that cost `used`. If `max` was lowered below its cost, it needs all of it. */
export function isAffordable({ rate }: LimitRule, cost: number, used: number, costLeft: number): boolean {
  return !rate || used + Math.min(cost, rate.max) <= costLeft;
}

/** Whether starts must be charged. */
export function isCharged({ rate, breaker }: LimitRule, { mark }: LimitUse): boolean {
  return Boolean(rate) || (Boolean(breaker) && mark !== '');
}

/** The state after `count` more starts. */
export function useCharged(
  { rate, breaker }: LimitRule,
  use: LimitUse,
  now: number,
  count: number,
  kept: number | null = null,
  at = now,
): LimitUse {
  const begun = breaker && use.mark !== '' && kept === null;
  const probes = begun
    ? ({ mark: '?', till: now + breaker.openFor } as const)
    : use.mark === '?' && kept === 0
      ? { till: now }
      : {};
  return { ...use, ...(rate && { rate: rateCharged(rate, use.rate, now, count, at) }), ...probes };
}

/** When the state of a limit is no longer needed. The state of an open breaker is needed until a probe has ended. */
export function useOverAt(rule: LimitRule, { blocked, rate, mark }: LimitUse, now: number): number {
  if (rule.breaker && mark !== '') return Infinity;
  return Math.max(blocked, rule.rate && rate !== '' ? rateOverAt(rule.rate, rate, now) : 0);
}

/** How many jobs of a line may run at once. Infinity if nothing limits them and they need not be counted. */
export function mostRunning({ order, concurrency, fairness }: LimitRule): number {
  return order === 'strict' ? 1 : concurrency || (fairness === 'in-flight' ? RULES.runningMax : Infinity);
}
