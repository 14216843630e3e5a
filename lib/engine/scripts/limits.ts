import type {
  BreakerState,
  LimitRule,
  LimitState,
  RunReportAnswer,
  ShareAnswer,
} from '../../contract/limit-verbs.js';
import { parseOrNull } from '../../job/text.js';
import { lines } from '../codec/replies.js';
import { defineScript } from '../script.js';

type RowLimits = readonly [
  ...[field: string, parts: string, rule: string, blockedForMs: number, left: string, nextInMs: number],
  ...[
    waiting: number,
    running: number,
    breaker: '' | BreakerState,
    holder: string,
    stops: 0 | 1,
    users: string,
    retryDelayMs: number,
  ],
];

function stateOf([field, parts, rule, blockedForMs, left, nextInMs, ...more]: RowLimits): LimitState {
  const [waiting, running, breaker, holder, stops, users, retryDelayMs] = more;
  // A value that another program wrote counts as no limit, as in the scripts.
  const { code = null, live = null } = (parseOrNull(parts) ?? {}) as Partial<LimitState>;
  return {
    field,
    code,
    live,
    rule: ruleOf(rule),
    blockedForMs,
    nextInMs,
    waiting,
    running,
    left: left === '' ? null : Number(left),
    breaker: breaker === '' ? null : breaker,
    retryDelayMs,
    holder: holder === '' ? null : holder,
    isStopped: stops === 1,
    users: lines(users.trimEnd()),
  };
}

/** Lua encodes an empty table as an object or as a list. */
function ruleOf(json: string): LimitRule {
  const rule = JSON.parse(json) as LimitRule | readonly unknown[];
  return Array.isArray(rule) ? {} : (rule as LimitRule);
}

export const limits = defineScript({
  name: 'limits',
  memory: 'read',
  args: { kind: 'text', field: 'text', cursor: 'text', limit: 'int' },
  reply: ([cursor, rows, ready, resting, stopped]: readonly [
    ...[cursor: string, rows: readonly RowLimits[]],
    ...[ready: number, resting: number, stopped: number],
  ]) => ({
    cursor,
    groups: { ready, resting, stopped },
    found: rows.map(stateOf),
  }),
});

export const setLimits = defineScript({
  name: 'set-limits',
  memory: 'allow',
  args: { field: 'text', part: 'text', rule: 'text', workers: 'text' },
  /** The active set of each of `workers`. */
  reply: (raw: 'again' | 'set') => raw,
});

export const wakeLines = defineScript({
  name: 'wake-lines',
  memory: 'allow',
  args: { cursor: 'text' },
  reply: (cursor: string) => cursor,
});

/** Its keys are those of the queue without a name. */
export const share = defineScript({
  name: 'share',
  memory: 'allow',
  /** keep: -1 while it is not known what was claimed. */
  args: {
    queue: 'text',
    worker: 'text',
    seq: 'digits',
    running: 'int',
    want: 'int',
    keep: 'int',
    unused: 'int',
    leaseMs: 'int',
  },
  /** limits: their names. */
  lists: ['limits'],
  reply: ([granted, grantedAt, opensInMs, woken, lost]: readonly [
    number,
    number,
    number,
    string,
    number,
  ]): ShareAnswer => ({
    granted,
    grantedAt,
    opensInMs: opensInMs > 0 ? opensInMs : null,
    woken: lines(woken.trimEnd()),
    isLost: lost === 1,
  }),
});

type RowReport = readonly [RunReportAnswer['breaker'], string, string, string, number];

export interface Reported {
  readonly answer: RunReportAnswer;
  /** The queues that use the shared limit whose breaker has changed. */
  readonly users: readonly string[];
  readonly openForMs: number;
}

export const report = defineScript({
  name: 'report',
  memory: 'allow',
  args: { maxEvents: 'int' },
  /**
   * reports: field of the limit, how many runs completed, how many failed, how many retries to book (below 0: booked ones that do not
   * happen), how many were first attempts, and 1 if a person closes the breaker. sharedEvents: type of the event, field of the shared
   * limit, and for how long nothing starts.
   */
  lists: ['reports', 'sharedEvents'],
  reply: (rows: readonly RowReport[]): Reported[] =>
    rows.map(([breaker, firstMs, eachMs, users, openForMs]) => ({
      answer: { breaker, firstMs: Number(firstMs), eachMs: Number(eachMs) },
      users: lines(users.trimEnd()),
      openForMs,
    })),
});

export const charge = defineScript({
  name: 'charge',
  memory: 'allow',
  args: {},
  /**
   * changes: field of the limit, ms to hold starts back (below 0: a hold ends), the amount to add to the count of its rate, when
   * the starts were counted that a negative amount takes back (-1: now), and 1 if the next probes of its breaker may start now.
   */
  lists: ['changes'],
  reply: (raw: number) => raw,
});
