import type { QueueScan } from '../redis/scan.js';
import type { History, ProcessHistory } from './history.js';
import { ACCEPTED, DEAD, DUPLICATE, INTENDED, QUEUED, REFUSED, STARTED } from './nonces.js';

/** The result of a run. The figures in `MUST_BE_ZERO` must be 0. */
export interface Account {
  readonly intended: number;
  readonly added: number;
  readonly refused: number;
  /** Adds without an answer, or that may have been applied: those that were, and those that were not. */
  readonly unknownApplied: number;
  readonly unknownNotApplied: number;
  readonly completed: number;
  readonly dead: Readonly<Record<string, number>>;
  /** Still in the queue. */
  readonly left: number;
  /** Accepted or run, but in the end neither completed, nor dead, nor in the queue. */
  readonly lost: number;
  /** Run, although never added, or although the add was refused. */
  readonly phantom: number;
  /** Ended twice, by the ledgers of workers or by the events of the store. */
  readonly doubleSettled: number;
  /** Accepted ends that the events of the store do not show. */
  readonly unwitnessed: number;
  /** All-or-none calls that were applied in part. */
  readonly torn: number;
  /** Answered as duplicates of jobs that never existed. */
  readonly falseDuplicates: number;
  /** Jobs that ended wrongly: completed instead of dead, or dead for another reason. */
  readonly wrongEnds: number;
  /** Harmless jobs that are dead as stalled, because they lost too many workers. */
  readonly unlucky: number;
  /** Ends of handlers after the first one of a job, and how many of them the faults explain. */
  readonly reruns: number;
  readonly rerunBound: number;
  /**
   * Completed by the events of the store, but no worker was told so; at most as many as the repeated runs that faults
   * explain.
   */
  readonly unheardEnds: number;
  readonly staleRefused: number;
  readonly stalled: number;
  /** Workers whose jobs were taken back, by their condition: killed, paused, cut off, or (wrongly) well. */
  readonly recoveries: { readonly dead: number; readonly paused: number; readonly cutOff: number };
  readonly falseRecoveries: number;
  /**
   * From the kill of a worker until the last of its running jobs ran again, in ms. Without the time in which nobody
   * could have run it, because Redis was away or no worker was up.
   */
  readonly longestRecovery: number;
  /** The same for jobs that lost several workers. They wait in `suspects`, of which a worker holds at most one. */
  readonly longestOfSuspects: number;
  readonly unhandled: number;
  readonly missedEvents: number;
  readonly foreignEvents: number;
  /** Differences between the counters and places of the store and the ledgers. */
  readonly disagreements: readonly string[];
}

export const MUST_BE_ZERO = [
  'left',
  'lost',
  'phantom',
  'doubleSettled',
  'unwitnessed',
  'torn',
  'falseDuplicates',
  'wrongEnds',
  'falseRecoveries',
  'unhandled',
  'missedEvents',
  'foreignEvents',
] as const satisfies readonly (keyof Account)[];

/** Compares the ledgers of the processes with what is left in the store. */
export function account(history: History, scan: QueueScan): Account {
  for (const id of scan.runnable) {
    const n = history.nonceOf(id) ?? scan.nonces.get(id);
    if (n !== undefined) history.nonces.mark(n, QUEUED);
  }
  const sums = sumUp(history);
  const dead = Object.fromEntries(history.deaths);
  const deaths = [...history.deaths.values()].reduce((sum, count) => sum + count, 0);
  const { counts } = history;
  return {
    ...sums,
    dead,
    left: scan.runnable.length,
    torn: torn(history),
    wrongEnds: counts.wrongEnds,
    unlucky: counts.unlucky,
    rerunBound: [...history.processes.values()].reduce((sum, { open }) => sum + open.size, counts.refused),
    staleRefused: counts.refused,
    stalled: counts.stalled,
    ...recoveries(history),
    ...longestRecoveries(history),
    unhandled: history.unhandled.length,
    missedEvents: history.missed,
    foreignEvents: counts.foreign,
    disagreements: [
      ...scan.faults,
      ...differ('completed by the counters', scan.processed, 'by the events', counts.completed),
      ...differ('dead by the counters', scan.deadCounter, 'by the events', deaths),
      ...differ('dead in the store', scan.dead, 'by the events', deaths),
    ],
  };
}

function sumUp({ nonces }: History) {
  const sums = {
    intended: 0,
    added: 0,
    refused: 0,
    unknownApplied: 0,
    unknownNotApplied: 0,
    completed: 0,
    lost: 0,
    phantom: 0,
    doubleSettled: 0,
    unwitnessed: 0,
    falseDuplicates: 0,
    reruns: 0,
    unheardEnds: 0,
  };
  for (let n = 0; n < nonces.size; n++) {
    const is = (flag: number) => nonces.is(n, flag);
    const [ends, accepted, told] = [nonces.ends[n]!, nonces.accepted[n]!, nonces.told[n]!];
    const ran = is(STARTED) || ends > 0;
    const settled = accepted > 0 || told > 0;
    if (is(INTENDED)) sums.intended += 1;
    if (is(ACCEPTED)) sums.added += 1;
    if (is(REFUSED)) sums.refused += 1;
    if (is(INTENDED) && !is(ACCEPTED) && !is(REFUSED)) {
      if (ran || settled || is(QUEUED)) sums.unknownApplied += 1;
      else sums.unknownNotApplied += 1;
    }
    if (settled && !is(DEAD)) sums.completed += 1;
    if ((is(ACCEPTED) || ran) && !settled && !is(QUEUED)) sums.lost += 1;
    if (ran && (!is(INTENDED) || is(REFUSED))) sums.phantom += 1;
    if (accepted > 1 || told > 1) sums.doubleSettled += 1;
    if (accepted > told) sums.unwitnessed += 1;
    if (told > 0 && accepted === 0 && !is(DEAD)) sums.unheardEnds += 1;
    if (is(DUPLICATE)) sums.falseDuplicates += 1;
    sums.reruns += Math.max(0, ends - 1);
  }
  return sums;
}

/** Of the calls with several jobs and no answer, those that were applied in part. */
function torn({ unheard, nonces, terms }: History): number {
  let count = 0;
  for (const [first, size] of unheard) {
    let applied = 0;
    for (let i = 0; i < size; i++) {
      const n = first + i * terms.stride;
      if (nonces.is(n, STARTED) || nonces.is(n, QUEUED) || nonces.told[n]! > 0) applied += 1;
    }
    if (applied > 0 && applied < size) count += 1;
  }
  return count;
}

/** Faults that make a living worker look dead: it is paused or cut off. Faults of Redis do not count. */
const PAUSES = new Set(['worker-stop']);
const SILENCES = new Set(['half-open', 'delay']);

function recoveries({ processes, recoveries: all, deeds, terms }: History) {
  const owners = new Map<string, ProcessHistory>();
  for (const process of processes.values()) for (const name of process.names) owners.set(name, process);
  const sums = { dead: 0, paused: 0, cutOff: 0 };
  let falseRecoveries = 0;
  for (const { name, jobs, at } of all) {
    const owner = owners.get(name);
    if (jobs === 0 || !owner) continue;
    const met = (kinds: ReadonlySet<string>) =>
      deeds.some(
        (deed) =>
          kinds.has(deed.kind) &&
          deed.met === owner.file &&
          deed.from <= at &&
          at <= deed.to + terms.leaseMs * 1.5,
      );
    if (owner.endedAt !== undefined && owner.endedAt <= at) sums.dead += 1;
    else if (met(PAUSES)) sums.paused += 1;
    else if (met(SILENCES)) sums.cutOff += 1;
    else falseRecoveries += 1;
  }
  return { recoveries: sums, falseRecoveries };
}

function longestRecoveries(history: History) {
  const died = new Map<number, number>();
  for (const { open, endedAt, cause } of history.processes.values()) {
    if (endedAt === undefined || cause === 'stop' || cause === 'term') continue;
    for (const { n } of open.values()) {
      if (history.kindOf(n) !== 'poison') died.set(n, Math.max(endedAt, died.get(n) ?? 0));
    }
  }
  const again = history.restarts(died);
  let longestRecovery = 0;
  let longestOfSuspects = 0;
  const down = downtime(history);
  for (const [n, at] of died) {
    const took = lengthWithout([at, again.get(n) ?? at], down);
    if ((history.stalls.get(n) ?? 0) >= 2) longestOfSuspects = Math.max(longestOfSuspects, took);
    else longestRecovery = Math.max(longestRecovery, took);
  }
  return { longestRecovery, longestOfSuspects };
}

function differ(what: string, count: number, other: string, otherCount: number): string[] {
  return count === otherCount ? [] : [`${what} ${count}, ${other} ${otherCount}`];
}

/** From, to: ms since the start of the run. */
type Span = readonly [number, number];

/** Faults during which Redis answers nobody, or refuses everything. */
const REDIS_AWAY = new Set(['redis-kill', 'redis-stall', 'full-disk']);

/** When nobody could have taken a job back: Redis was away, or no worker was up. */
function downtime({ deeds, processes }: History): Span[] {
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
function lengthWithout(span: Span, others: readonly Span[]): number {
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
