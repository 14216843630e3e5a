import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';
import { bodiesOf, claims, lines } from '../codec/replies.js';
import type { ClaimAnswer } from '../../contract/engine.js';

type Raw = 0 | [number, string, string | string[], number, (string | null)[], (string | null)[], number];

export const claim = defineScript({
  name: 'claim',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'attempts',
    'stalls',
    'workers',
    'worker',
    'active',
    'events',
    'doorbell',
    ...LETTERED_JOBS,
  ],
  args: {
    worker: 'text',
    seq: 'digits',
    leaseMs: 'digits',
    recordMs: 'digits',
    want: 'int',
    maxBytes: 'int',
    separator: 'text',
    maxEvents: 'int',
  },
  /** Null: there is more to do than to claim, or the answer cannot be read. */
  reply: (raw: Raw): (ClaimAnswer & { now: number }) | null => {
    if (raw === 0) return null;
    const [now, ids, bodies, held, failed, stalls, isCut] = raw;
    const claimed = claims([lines(ids), bodiesOf(bodies), failed, stalls]);
    if (claimed.length === 0 && held < 0) return null;
    return { kind: 'claimed', now, held: held < 0 ? null : held, claimed, isCut: isCut === 1 };
  },
});
