import type { LastFull } from '../contract/admin-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import { counted } from '../job/text.js';
import { WHEN_FULL, type ResolvedMaxWaiting } from '../options/bounds.js';
import type { QueueInfo } from './queue-inspector.js';

type OnFull = ResolvedMaxWaiting['onFull'];

/** For how long it is reported that an add found no room. */
const LATELY_MS = 600_000;

/** A queue or a group of it that is full, or had no room for an add lately. */
export interface FullPlace {
  readonly isNow: boolean;
  /** Null for the queue. */
  readonly group: string | null;
  /** Jobs that wait there. */
  readonly waiting: number;
  /** How many may wait. */
  readonly limit: number;
  readonly onFull: OnFull;
  /** How long ago an add found no room. */
  readonly agoMs: number;
}

const WAS_FULL: Readonly<Record<OnFull, string>> = {
  reject: 'adds were rejected',
  wait: 'adds waited for room',
  dropNew: 'new jobs were dropped',
  dropOldest: 'the oldest waiting jobs were removed',
};

/**
 * Where a queue is full, or was full lately.
 *
 * @param bound its `maxWaiting`, if this process knows it. Otherwise that of the last add without room counts.
 */
export async function fullPlaces(
  engine: Pick<QueueEngine, 'admin' | 'limits' | 'now'>,
  { name, counts: { waiting } }: Pick<QueueInfo, 'name' | 'counts'>,
  bound?: ResolvedMaxWaiting,
): Promise<FullPlace[]> {
  const last = await engine.admin.lastFull(name);
  const agoMs = last ? Math.max(0, engine.now() - last.at) : Infinity;
  const recent = agoMs <= LATELY_MS ? last : null;
  const ofQueue = recent?.group === null ? recent : undefined;
  const { limit, onFull } = bound ?? ofQueue ?? { limit: Infinity, onFull: 'reject' };
  const found: FullPlace[] = [];
  if (waiting >= limit) found.push({ isNow: true, group: null, waiting, limit, onFull, agoMs: 0 });
  else if (ofQueue) found.push({ ...ofQueue, isNow: false, waiting, agoMs });
  if (recent?.group != null) found.push(await groupOf(engine.limits, name, recent.group, recent, agoMs));
  return found;
}

async function groupOf(
  limits: QueueEngine['limits'],
  queue: string,
  group: string,
  { limit, onFull }: LastFull,
  agoMs: number,
): Promise<FullPlace> {
  const { waiting, rule } = await limits.group(queue, group);
  const most = rule.maxSize || Infinity;
  if (waiting >= most) return { isNow: true, group, waiting, limit: most, onFull, agoMs: 0 };
  return { isNow: false, group, waiting, limit, onFull, agoMs };
}

/**
 * Such as `is full, so adds are rejected: 100 waiting jobs, and maxWaiting is 100`, after the name of the queue or the group.
 *
 * @param timeOf makes a text of a time in ms.
 */
export function fullText(
  { isNow, group, waiting, limit, onFull, agoMs }: FullPlace,
  timeOf: (ms: number) => string,
): string {
  const rule = `${group === null ? 'maxWaiting' : 'maxSize'} is ${limit.toLocaleString('en')}`;
  if (!isNow) return `had no room ${timeOf(agoMs)} ago, so ${WAS_FULL[onFull]}: ${rule}`;
  return `is full, so ${WHEN_FULL[onFull]}: ${counted(waiting, 'waiting job')}, and ${rule}`;
}
