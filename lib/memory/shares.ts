import type { LimitField, LimitRule, ShareAnswer, ShareCall } from '../contract/limit-verbs.js';
import { RULES } from '../job/rules.js';
import { isCharged, mostRunning, roomOf, useCharged, type LimitUse } from './rates.js';

/** The places that one worker has of a limit, and until when. */
interface Share {
  readonly queue: string;
  readonly worker: string;
  till: number;
  count: number;
  seq: number;
  granted: number;
  waits: boolean;
  /** When the limit last granted fewer places than the worker wanted. */
  short?: number | undefined;
  /** Until when its places count after their lease is over. */
  doubt?: number | undefined;
}

/** The rules of the limits, and how much of them is used. */
interface Rules {
  readonly inside: {
    has(field: LimitField): boolean;
    rule(field: LimitField): LimitRule;
    use(field: LimitField): LimitUse;
    setUse(field: LimitField, use: LimitUse): void;
  };
}

/** Which workers have places of shared limits. Does the same as `share.lua`. */
export class ShareBook {
  private readonly shares = new Map<string, Share[]>();
  private readonly waiting = new Map<string, Set<string>>();

  constructor(private readonly rules: Rules) {}

  running(limit: string, now: number): number {
    return this.living(limit, now).reduce((sum, { count }) => sum + count, 0);
  }

  /** The queues of workers that have places of a limit or wait for one. */
  users(limit: string, now: number): string[] {
    return [...(this.waiting.get(limit) ?? []), ...this.living(limit, now).map(({ queue }) => queue)];
  }

  share(queue: string, call: ShareCall, now: number): ShareAnswer {
    const { want, kept, unused, seq, running, leaseMs } = call;
    const { inside } = this.rules;
    let known: number | undefined;
    let granted = want;
    let opensInMs = 0;
    let isLost = false;
    const takes = call.limits.map((limit) => {
      const rule = inside.rule(`s:${limit}`);
      if (!inside.has(`s:${limit}`)) [isLost, granted] = [true, 0];
      const all = this.living(limit, now, leaseMs / 2);
      const mine = this.shareOf(all, queue, call.worker);
      this.shares.set(limit, all);
      if (want > 0 && mine.seq === seq) known = mine.granted;
      const { left, nextMs } = roomOf(rule, inside.use(`s:${limit}`), now);
      const others = all.reduce((sum, { count }) => sum + count, 0) - mine.count;
      const most = mostRunning(rule);
      const reserved = want > 0 && most < Infinity ? placesForOthers(all, mine, most, now) : 0;
      const places = Math.max(0, most - others - running - reserved);
      if (left < want) opensInMs = Math.max(opensInMs, nextMs, 1);
      granted = Math.min(granted, left, places);
      return { limit, rule, all, mine, places };
    });
    granted = known ?? granted;
    const woken: string[] = [];
    let countedAt = now;
    for (const { limit, rule, all, mine, places } of takes) {
      const { count: before, till } = mine;
      const grantedAt = Math.min(now, till > 0 ? till - leaseMs : now);
      if (known !== undefined) countedAt = Math.min(countedAt, grantedAt);
      let counted = 0;
      if (kept !== null) {
        if (mine.seq === seq) {
          counted = kept - mine.granted;
          mine.granted = kept;
        }
      } else if (want > 0 && known === undefined) {
        counted = granted;
        const isShort = places === granted && granted < want;
        Object.assign(mine, { seq, granted, short: isShort ? now : undefined });
        if (granted > 0) moveToEnd(all, mine);
      }
      const use = inside.use(`s:${limit}`);
      if (counted !== 0 && isCharged(rule, use))
        inside.setUse(`s:${limit}`, useCharged(rule, use, now, counted, kept, grantedAt));
      if (seq >= mine.seq) mine.count = running + (kept === null ? granted : 0);
      mine.till = now + leaseMs;
      mine.doubt = undefined;
      if (unused) this.stopWaiting(limit, all, mine);
      const isShort = places < want;
      if (mine.count < before) {
        const waiting = [...(this.waiting.get(limit) ?? [])];
        woken.push(...waiting.filter((one) => !isShort || one !== queue));
        if (this.waiting.delete(limit)) for (const share of all) share.waits = false;
      }
      if (isShort) {
        mine.waits = true;
        this.waiting.set(limit, (this.waiting.get(limit) ?? new Set()).add(queue));
      }
    }
    const opensIn = opensInMs > 0 ? Math.ceil(opensInMs) : null;
    return { granted, grantedAt: countedAt, opensInMs: opensIn, woken, isLost };
  }

  private living(limit: string, now: number, doubtMs?: number): Share[] {
    const all = this.shares.get(limit) ?? [];
    for (const share of all)
      if (doubtMs !== undefined && share.till <= now && share.count > 0) share.doubt ??= now + doubtMs;
    return all.filter(({ till, doubt = 0 }) => Math.max(till, doubt) > now);
  }

  private stopWaiting(limit: string, all: readonly Share[], mine: Share): void {
    mine.waits = false;
    mine.short = undefined;
    if (all.some((one) => one.queue === mine.queue && one.waits && one.granted === 0)) return;
    const waiting = this.waiting.get(limit);
    waiting?.delete(mine.queue);
    if (waiting?.size === 0) this.waiting.delete(limit);
  }

  private shareOf(all: Share[], queue: string, worker: string): Share {
    let mine = all.find((one) => one.queue === queue && one.worker === worker);
    if (!mine) all.unshift((mine = { queue, worker, till: 0, count: 0, seq: 0, granted: 0, waits: false }));
    return mine;
  }
}

/** The same as in `shares.lua`. */
function placesForOthers(all: readonly Share[], mine: Share, most: number, now: number): number {
  const counts = new Map<string, number>();
  const latest = new Map<string, number>();
  const short = new Set<string>();
  for (const [i, one] of all.entries()) {
    counts.set(one.queue, (counts.get(one.queue) ?? 0) + one.count);
    latest.set(one.queue, i);
    if (one.queue !== mine.queue && (one.short ?? -Infinity) > now - RULES.shortMs) short.add(one.queue);
  }
  const share = Math.max(1, Math.floor(most / (short.size + 1)));
  return [...short]
    .filter((queue) => latest.get(queue)! < latest.get(mine.queue)!)
    .reduce((sum, queue) => sum + Math.max(0, share - counts.get(queue)!), 0);
}

function moveToEnd(all: Share[], mine: Share): void {
  all.splice(all.indexOf(mine), 1);
  all.push(mine);
}
