import type { CountedDays } from '../../contract/stats.js';
import { counted, quoted } from '../../job/text.js';
import { RULE_UNITS, type AlertRuleKind, type AlertUnit, type CheckedRule } from './rules.js';

/** An alert that fires or is resolved. */
export interface Alert {
  /**
   * Made of rule, queue and time. It is the same when the alert fires, when it is resolved, and in every repeated notification.
   */
  readonly id: string;
  /** `firing`: the limit is exceeded; `resolved`: it is no longer exceeded. */
  readonly state: 'firing' | 'resolved';
  /** Kind of the rule. */
  readonly rule: AlertRuleKind;
  /** Name of the rule. */
  readonly name: string;
  /** Severity of the rule. */
  readonly severity: 'info' | 'warning' | 'critical';
  /** The option `source`; null if there is none. */
  readonly source: string | null;
  /** Name of the queue; null for a rule about Redis. */
  readonly queue: string | null;
  /** The value that was measured. */
  readonly value: number;
  /** The limit of the rule. */
  readonly limit: number;
  /** Unit of `value` and `limit`. */
  readonly unit: AlertUnit;
  /** Since when the value is above the limit, by the clock of Redis. */
  readonly since: Date;
  /** When this was found, by the clock of Redis. */
  readonly at: Date;
  /** A sentence for people. */
  readonly text: string;
}

/** A value measured for a rule. */
export interface Reading {
  readonly rule: CheckedRule;
  readonly queue: string | null;
  readonly value: number;
}

/** Counters of a queue at one time. The difference of two such points is what happened in between. */
export interface Counted {
  readonly at: number;
  /** Today and yesterday, so that midnight does not reset them within a window. */
  readonly days: CountedDays;
}

/** The stored state of one rule, queue and receiver. Times are ms. */
interface Row {
  readonly since: number;
  readonly value: number;
  /** When the alert began to fire; absent if it does not fire. */
  readonly firedAt?: number;
  /** When it fired again because its end may have been delivered. Its id does not change. */
  readonly againAt?: number;
  /** The alert fires within the cooldown of its last firing, so no notification was sent yet. */
  readonly isHeld?: boolean;
  /** When the alert was resolved. The row is kept until the cooldown is over. */
  readonly resolvedAt?: number;
  /** The notification that is still to be delivered. */
  readonly undelivered?: 'firing' | 'resolved';
  /** When a notification of the last firing was delivered. */
  readonly notifiedAt?: number;
}

/** The leader stores this in Redis, so that another process can continue. */
export interface AlertState {
  readonly rows: Readonly<Record<string, Row>>;
  readonly counters: Readonly<Record<string, readonly Counted[]>>;
}

export const NO_STATE: AlertState = { rows: {}, counters: {} };

/** The stored state; `NO_STATE` if another version or program wrote it. */
export function readState(text: string): AlertState {
  try {
    const { rows, counters } = JSON.parse(text) as Partial<AlertState>;
    if (typeof rows === 'object' && typeof counters === 'object') return { rows, counters };
  } catch {
    // Nothing, as below.
  }
  return NO_STATE;
}

/** The first receiver has no number in its keys, as in a state that an earlier version wrote. */
function keyOf(name: string, queue: string | null, receiver: number): string {
  return `${name}\n${queue ?? ''}${receiver === 0 ? '' : `\n${receiver}`}`;
}

function partsOf(key: string): { readonly name: string; readonly queue: string; readonly receiver: number } {
  const [name, queue, receiver = 0] = key.split('\n') as [string, string, string?];
  return { name, queue, receiver: Number(receiver) };
}

/** To whom notifications are sent. */
export interface Receivers {
  /** How many there are. Each has separate rows, so it gets each notification once, even if another receiver fails. */
  readonly count: number;
  /** Keys of the rows whose notification is being sent. They do not change until the receiver has answered. */
  readonly busy: ReadonlySet<string>;
}

/**
 * The rows after these readings. If a queue is gone and has no reading, its alerts are resolved. The rows of a queue that could not be
 * read do not change.
 */
export function advance(
  rows: AlertState['rows'],
  readings: readonly Reading[],
  rules: readonly CheckedRule[],
  { count, busy }: Receivers,
  now: number,
  unread: Pick<ReadonlyMap<string, unknown>, 'has'> = new Map(),
): AlertState['rows'] {
  const next: Record<string, Row> = {};
  const seen = new Set<string>();
  const look = (key: string, rule: CheckedRule, value: number) => {
    seen.add(key);
    const row = busy.has(key) ? rows[key] : step(rows[key], rule, value, now);
    if (row) next[key] = row;
  };
  for (const { rule, queue, value } of readings)
    for (let receiver = 0; receiver < count; receiver++) look(keyOf(rule.name, queue, receiver), rule, value);
  for (const key of Object.keys(rows)) {
    const { name, queue, receiver } = partsOf(key);
    const rule = rules.find((one) => one.name === name);
    if (!rule || receiver >= count || seen.has(key)) continue;
    if (unread.has(queue)) next[key] = rows[key]!;
    else look(key, rule, 0);
  }
  return next;
}

function step(row: Row | undefined, rule: CheckedRule, value: number, now: number): Row | undefined {
  const isOver = value > rule.limit;
  // The end of the alert was not delivered for certain, and the value is above the limit again: the same alert continues. It is sent
  // again, because a failed call may have delivered the end.
  if (row?.undelivered === 'resolved' && isOver)
    return { ...without(row, 'resolvedAt'), value, againAt: now, undelivered: 'firing' };
  if (!row || row.resolvedAt !== undefined) {
    if (isOver) return fire({ since: now, value, ...notifiedOf(row) }, rule, now);
    const isKept = row && (row.undelivered !== undefined || isCoolingDown(row, rule, now));
    return isKept ? row : undefined;
  }
  if (row.firedAt === undefined) {
    // The clock of Redis may have been set back.
    if (isOver) return fire({ ...row, since: Math.min(row.since, now), value }, rule, now);
    return isCoolingDown(row, rule, now)
      ? { since: row.since, value, resolvedAt: now, ...notifiedOf(row) }
      : undefined;
  }
  if (value > rule.resolve) return fire({ ...row, value }, rule, now);
  const { since, firedAt, againAt } = row;
  return {
    since,
    firedAt,
    ...(againAt !== undefined && { againAt }),
    value,
    resolvedAt: now,
    ...notifiedOf(row),
    // No notification of a held alert was sent. A failed call may still have delivered its notification.
    ...(row.isHeld !== true && { undelivered: 'resolved' as const }),
  };
}

/** A clock that was set back must not make the cooldown much longer. */
function isCoolingDown({ notifiedAt }: Row, { cooldownMs }: CheckedRule, now: number): boolean {
  return notifiedAt !== undefined && Math.abs(now - notifiedAt) < cooldownMs;
}

function without<K extends keyof Row>(row: Row, ...names: readonly K[]): Omit<Row, K> {
  return Object.fromEntries(
    Object.entries(row).filter(([name]) => !names.includes(name as K)),
  ) as unknown as Omit<Row, K>;
}

function notifiedOf(row: Row | undefined): Pick<Row, 'notifiedAt'> {
  return row?.notifiedAt === undefined ? {} : { notifiedAt: row.notifiedAt };
}

/** Fires when the value has been above the limit for long enough. Within the cooldown no notification is sent. */
function fire(row: Row, rule: CheckedRule, now: number): Row {
  if (row.firedAt !== undefined && row.isHeld !== true) return row;
  if (row.firedAt === undefined && now - row.since < rule.forMs) return row;
  const firedAt = row.firedAt ?? now;
  if (isCoolingDown(row, rule, now)) return { ...row, firedAt, isHeld: true };
  return { ...without(row, 'isHeld', 'notifiedAt'), firedAt, undelivered: 'firing' };
}

/** The rows after an alert was delivered at a time. */
export function delivered(
  rows: AlertState['rows'],
  key: string,
  alert: Alert,
  at: number,
): AlertState['rows'] {
  const row = rows[key];
  if (!row || row.since !== alert.since.getTime()) return rows;
  const known = alert.state === 'firing' ? { ...row, notifiedAt: at } : row;
  // If not, another process has evaluated the rules meanwhile and found a later change, which is still to be delivered.
  const isLast = row.undelivered === alert.state;
  return { ...rows, [key]: isLast ? without(known, 'undelivered') : known };
}

/** The alerts that fire now, once for all receivers, or those that a receiver has not got yet. */
export function alertsOf(
  rows: AlertState['rows'],
  rules: readonly CheckedRule[],
  source: string | null,
  which: 'firing' | 'undelivered',
  now: number,
): { readonly key: string; readonly receiver: number; readonly alert: Alert }[] {
  return Object.entries(rows).flatMap(([key, row]) => {
    const { name, queue, receiver } = partsOf(key);
    const rule = rules.find((one) => one.name === name);
    const isFiring = receiver === 0 && row.firedAt !== undefined && row.resolvedAt === undefined;
    if (!rule || (which === 'firing' ? !isFiring : row.undelivered === undefined)) return [];
    const state = which === 'firing' ? 'firing' : row.undelivered!;
    return [{ key, receiver, alert: toAlert(rule, queue === '' ? null : queue, row, state, source, now) }];
  });
}

function toAlert(
  rule: CheckedRule,
  queue: string | null,
  { value, since, firedAt = since, againAt = firedAt, resolvedAt }: Row,
  state: Alert['state'],
  source: string | null,
  now: number,
): Alert {
  const { rule: kind, name, severity, limit } = rule;
  const unit = RULE_UNITS[kind];
  const at = new Date(state === 'resolved' ? (resolvedAt ?? now) : againAt);
  const place = queue === null ? 'Redis' : `queue ${quoted(queue)}`;
  const text =
    state === 'firing'
      ? `${place}: ${sentenceOf(kind, value)}${unit === 'flag' ? '' : ` (limit ${shown(unit, limit)})`}`
      : `${place}: ${name} is resolved (${shown(unit, value)})`;
  return {
    id: `${name}:${queue ?? ''}:${firedAt}`,
    state,
    rule: kind,
    name,
    severity,
    source,
    queue,
    value,
    limit,
    unit,
    since: new Date(since),
    at,
    text,
  };
}

function sentenceOf(kind: AlertRuleKind, value: number): string {
  switch (kind) {
    case 'backlog':
      return counted(value, 'waiting job');
    case 'oldestWaiting':
      return `the oldest job has waited ${shown('ms', value)}`;
    case 'dead':
      return counted(value, 'dead job');
    case 'deadRate':
      return `${counted(value, 'job')} died within the window`;
    case 'failureRatio':
      return `${shown('ratio', value)} of attempts failed`;
    case 'noWorkers':
      return 'has jobs, and no process claims them';
    case 'stalled':
      return `${counted(value, 'worker')} went silent, and nobody took back their jobs`;
    case 'paused':
      return 'is paused';
    case 'breakerOpen':
      return 'a circuit breaker is open, because too many runs failed';
    case 'full':
      return 'is full, or a group of it is';
    case 'stoppedGroups':
      return `${counted(value, 'group')} in strict order ${value === 1 ? 'is' : 'are'} stopped by a dead job`;
    case 'scheduleLag':
      return `a schedule is ${shown('ms', value)} late`;
    case 'longestRun':
      return `a job has been running for ${shown('ms', value)}`;
    case 'memory':
      return `${shown('ratio', value)} of maxmemory is used`;
  }
}

function shown(unit: AlertUnit, value: number): string {
  if (unit === 'ratio') return `${Math.round(value * 1_000) / 10} %`;
  if (unit !== 'ms') return String(value);
  if (value < 120_000) return `${Math.round(value / 1_000)} s`;
  return value < 7_200_000 ? `${Math.round(value / 60_000)} min` : `${Math.round(value / 3_600_000)} h`;
}
