import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';
import { bodiesOf, claims, lines } from '../codec/replies.js';
import { supplyOf } from './exchange.js';
import type { ClaimedJob, Supply } from '../../contract/engine.js';
import { RULES } from '../../job/rules.js';

type Raw =
  | ['claimed', number, number, number, string, string, (string | null)[], (string | null)[]]
  | ['stale' | 'unknown-worker' | 'plain', number];

/** The answer to a claim of a queue with limits. */
export type LimitedClaim =
  | {
      readonly kind: 'claimed';
      readonly now: number;
      readonly supply: Supply;
      readonly isCut: boolean;
      readonly held: number;
      readonly claimed: readonly ClaimedJob[];
    }
  /** `plain`: the queue has no limits. */
  | { readonly kind: 'stale' | 'unknown-worker' | 'plain'; readonly now: number };

export const claimLimited = defineScript({
  name: 'claim-limited',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    'attempts',
    'stalls',
    'failures',
    'dead',
    'limits',
    'limitStates',
    'grouped',
    'lines',
    'lineStates',
    'ready',
    'resting',
    'slots',
    'workers',
    'worker',
    'active',
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
    separator: 'text',
    maxEvents: 'int',
  },
  reply: (raw: Raw): LimitedClaim => {
    if (raw[0] !== 'claimed') return { kind: raw[0], now: raw[1] };
    const [, now, supply, held, ids, bodies, failed, stalls] = raw;
    return {
      kind: 'claimed',
      now,
      supply: supplyOf(supply),
      isCut: supply === RULES.supplyCut,
      held,
      claimed: claims([lines(ids), bodiesOf(bodies), failed, stalls]),
    };
  },
});
