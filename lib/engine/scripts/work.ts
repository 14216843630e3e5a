import type {
  AdoptAnswer,
  ClaimAnswer,
  ClaimedJob,
  ExchangeAnswer,
  QueueLook,
  Supply,
} from '../../contract/engine.js';
import { RULES } from '../../job/rules.js';
import { bodiesOf, claims, lines, ms } from '../codec/replies.js';
import { defineScript } from '../script.js';

type RawExchange =
  | [
      'exchanged',
      number,
      number,
      number,
      number,
      number,
      number,
      string | 0,
      string,
      string,
      (string | null)[],
      (string | null)[],
    ]
  | ['stale', number]
  | ['unknown-worker', number];

type Exchanged = Extract<ExchangeAnswer, { kind: 'exchanged' }>;

function supplyOf(code: number): Supply {
  if (code > 0) return { limitedForMs: code };
  if (code === RULES.supplyPaused) return 'paused';
  return code === RULES.supplyEmpty ? 'empty' : 'more';
}

/** An empty line separates lost jobs from cancelled ones. */
function lostAndCancelled(text: string | 0): Pick<Exchanged, 'lost' | 'cancelled'> {
  if (text === 0) return { lost: [] };
  const [lost = '', cancelled = ''] = text.split('\n\n');
  return { lost: lines(lost), ...(cancelled !== '' && { cancelled: lines(cancelled) }) };
}

export const exchange = defineScript({
  name: 'exchange',
  memory: 'allow',
  args: {
    worker: 'text',
    seq: 'digits',
    pipelined: 'int',
    leaseMs: 'digits',
    want: 'int',
    maxBytes: 'int',
    maySuspect: 'int',
    settledEvents: 'int',
    nameIndexes: 'text',
    /** Ids, one per line. Most settlements have nothing else. */
    completed: 'text',
    /** The text between bodies in the answer. No body contains it. */
    separator: 'text',
    maxEvents: 'int',
    deadMax: 'int',
    deadAge: 'int',
    completedMax: 'int',
  },
  /**
   * released: id, whether it had started. kept: id, for ms, record. retried: id, delay ms, failure, counted, priority. dead: id,
   * failure, counted. names: name, completed, failed, dead. eventFields: field, value of the events of all these jobs.
   */
  lists: ['kept', 'retried', 'dead', 'released', 'names', 'eventFields'],
  reply: (raw: RawExchange): ExchangeAnswer & { now: number } => {
    if (raw[0] !== 'exchanged') return { kind: raw[0], now: raw[1] };
    const [, now, supply, due, lease, schedule, held, lost, ids, bodies, failed, stalls] = raw;
    return {
      kind: 'exchanged' as const,
      now,
      claimedAt: now,
      isCut: supply === RULES.supplyCut,
      supply: supplyOf(supply),
      ...((supply === RULES.supplyLimited || supply === RULES.supplyAtOnce) && { isLimited: true as const }),
      ...(supply === RULES.supplyAtOnce && { startsAtOnce: true as const }),
      dueInMs: ms(due),
      leaseInMs: ms(lease),
      scheduleInMs: ms(schedule),
      held,
      ...lostAndCancelled(lost),
      claimed: claims([lines(ids), bodiesOf(bodies), failed, stalls]),
    };
  },
});

type RawClaim = 0 | [number, string, string | string[], number, (string | null)[], (string | null)[], number];

export const claim = defineScript({
  name: 'claim',
  memory: 'allow',
  args: {
    worker: 'text',
    seq: 'digits',
    leaseMs: 'digits',
    want: 'int',
    maxBytes: 'int',
    separator: 'text',
    maxEvents: 'int',
  },
  /** Null: there is more to do than to claim, or the answer cannot be read. */
  reply: (raw: RawClaim): (ClaimAnswer & { now: number }) | null => {
    if (raw === 0) return null;
    const [now, ids, bodies, held, failed, stalls, isCut] = raw;
    const claimed = claims([lines(ids), bodiesOf(bodies), failed, stalls]);
    if (claimed.length === 0 && held < 0) return null;
    return { kind: 'claimed', now, held: held < 0 ? null : held, claimed, isCut: isCut === 1 };
  },
});

type RawClaimLimited =
  | ['claimed', number, number, number, string, string, (string | null)[], (string | null)[], number]
  | ['stale' | 'unknown-worker' | 'plain', number];

/** The answer to a claim of a queue with limits. */
export type LimitedClaim =
  | {
      readonly kind: 'claimed';
      readonly now: number;
      readonly supply: Supply;
      readonly isCut: boolean;
      readonly held: number;
      /** Whether limits keep waiting jobs from starting. */
      readonly isHeldBack: boolean;
      readonly claimed: readonly ClaimedJob[];
    }
  /** `plain`: the queue has no limits. */
  | { readonly kind: 'stale' | 'unknown-worker' | 'plain'; readonly now: number };

export const claimLimited = defineScript({
  name: 'claim-limited',
  memory: 'allow',
  args: {
    worker: 'text',
    seq: 'digits',
    pipelined: 'int',
    leaseMs: 'digits',
    want: 'int',
    maxBytes: 'int',
    maySuspect: 'int',
    perTurn: 'int',
    separator: 'text',
    maxEvents: 'int',
  },
  reply: (raw: RawClaimLimited): LimitedClaim => {
    if (raw[0] !== 'claimed') return { kind: raw[0], now: raw[1] };
    const [, now, supply, held, ids, bodies, failed, stalls, heldBack] = raw;
    return {
      kind: 'claimed',
      now,
      supply: supplyOf(supply),
      isCut: supply === RULES.supplyCut,
      held,
      isHeldBack: heldBack > 0,
      claimed: claims([lines(ids), bodiesOf(bodies), failed, stalls]),
    };
  },
});

const FIELDS = 5;

export const look = defineScript({
  name: 'look',
  memory: 'read',
  keysOfQueues: ['meta', 'wait', 'suspects', 'prioritized', 'grouped', 'delayed', 'workers', 'upcoming'],
  /** known: in how many of the queues the last check found something. They come first. */
  args: { known: 'int' },
  /** workers: for each queue the worker that asks. */
  lists: ['workers'],
  /** place: the index of the queue. */
  reply: (raw: number[]): (Omit<QueueLook, 'queue'> & { place: number })[] =>
    Array.from({ length: raw.length / FIELDS }, (_, i) => {
      const [place = 0, work = 0, due = -1, lease = -1, schedule = -1] = raw.slice(i * FIELDS);
      return { place, work: work === 1, dueInMs: ms(due), leaseInMs: ms(lease), scheduleInMs: ms(schedule) };
    }),
});

export const note = defineScript({
  name: 'note',
  memory: 'refuse',
  args: { logsMax: 'int', maxEvents: 'int', eventsMaxBytes: 'int', progressMaxBytes: 'int' },
  /** notes: id, name, attempt, progress, log of each; progress or log can be empty. */
  lists: ['notes'],
  reply: (held: number[]) => held.map((is) => is === 1),
});

export const release = defineScript({
  name: 'release',
  memory: 'allow',
  args: { worker: 'text', leave: 'int', maxEvents: 'int' },
  /** ids: id. */
  lists: ['ids'],
  reply: (raw: string[]) => ({ lost: raw }),
});

export const adopt = defineScript({
  name: 'adopt',
  memory: 'allow',
  args: { maxEvents: 'int' },
  /** known: id. */
  lists: ['known'],
  reply: ([lost, buried, unknown]: [string[], string[], string[]]): AdoptAnswer => ({
    lost,
    buried,
    unknown,
  }),
});

export const promote = defineScript({
  name: 'promote',
  memory: 'allow',
  args: { limit: 'int' },
  reply: ([promoted, due]: [number, number]) => ({ promoted, dueInMs: ms(due) }),
});
