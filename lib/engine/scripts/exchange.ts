import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';
import { bodiesOf, claims, lines, ms } from '../codec/replies.js';
import type { ExchangeAnswer, Supply } from '../../contract/engine.js';
import { RULES } from '../../job/rules.js';

type Raw =
  | [
      'exchanged',
      number,
      number,
      number,
      number,
      number,
      number,
      string[],
      string,
      string,
      (string | null)[],
      (string | null)[],
    ]
  | ['stale', number]
  | ['unknown-worker', number];

export function supplyOf(code: number): Supply {
  if (code > 0) return { limitedForMs: code };
  if (code === RULES.supplyPaused) return 'paused';
  return code === RULES.supplyEmpty ? 'empty' : 'more';
}

export const exchange = defineScript({
  name: 'exchange',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    ...TRACE_KEYS,
    'workers',
    'worker',
    'active',
    'dead',
    'completed',
    'results',
    'upcoming',
    'cancelled',
    'events',
    'doorbell',
    'stats',
    ...LETTERED_JOBS,
  ],
  args: {
    worker: 'text',
    seq: 'digits',
    pipelined: 'int',
    leaseMs: 'digits',
    recordMs: 'digits',
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
   * failure, counted. names: name, completed, failed, dead. said: field, value of the events of all these jobs.
   */
  lists: ['kept', 'retried', 'dead', 'released', 'names', 'said'],
  reply: (raw: Raw): ExchangeAnswer & { now: number } => {
    if (raw[0] !== 'exchanged') return { kind: raw[0], now: raw[1] };
    const [, now, supply, due, lease, schedule, held, lost, ids, bodies, failed, stalls] = raw;
    return {
      kind: 'exchanged' as const,
      now,
      isCut: supply === RULES.supplyCut,
      supply: supplyOf(supply),
      ...(supply === RULES.supplyLimited && { isLimited: true as const }),
      dueInMs: ms(due),
      leaseInMs: ms(lease),
      scheduleInMs: ms(schedule),
      held,
      lost,
      claimed: claims([lines(ids), bodiesOf(bodies), failed, stalls]),
    };
  },
});
