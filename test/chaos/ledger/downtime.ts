import type { History } from './history.js';

/** From, to: ms since the start of the run. */
type Span = readonly [number, number];

/** Faults during which Redis answers nobody, or refuses everything. */
const REDIS_AWAY = new Set(['redis-kill', 'redis-stall', 'full-disk']);

/** When nobody could have taken a job back: Redis was away, or no worker was up. */
export function downtime({ deeds, processes }: History): Span[] {
  const away = deeds.filter(({ kind }) => REDIS_AWAY.has(kind)).map(({ from, to }): Span => [from, to]);
  const up: Span[] = [];
  for (const { file, startedAt, endedAt = Infinity } of processes.values()) {
    const stops = deeds.filter(({ kind, met }) => kind === 'worker-stop' && met === file);
    if (startedAt === undefined) continue;
    up.push(
      ...without(
        [startedAt, endedAt],
        stops.map(({ from, to }): Span => [from, to]),
      ),
    );
  }
  return union([...away, ...without([0, Infinity], up)]);
}

/** The length of the span that no other span covers. */
export function lengthWithout(span: Span, others: readonly Span[]): number {
  return without(span, others).reduce((sum, [from, to]) => sum + to - from, 0);
}

function without([from, to]: Span, others: readonly Span[]): Span[] {
  const left: Span[] = [];
  let at = from;
  for (const [begin, end] of union(others)) {
    if (begin >= to) break;
    if (begin > at) left.push([at, begin]);
    at = Math.max(at, end);
  }
  if (at < to) left.push([at, to]);
  return left;
}

function union(spans: readonly Span[]): Span[] {
  const merged: [number, number][] = [];
  for (const [from, to] of spans.toSorted((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}
