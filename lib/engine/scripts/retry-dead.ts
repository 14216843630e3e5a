import { walked, type RawWalked } from '../codec/replies.js';
import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';
import { DEAD_WALK } from '../walks.js';

export const retryDead = defineScript({
  name: 'retry-dead',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'prioritized',
    'dead',
    ...TRACE_KEYS,
    'events',
    'doorbell',
    ...LETTERED_JOBS,
  ],
  /** data: JSON of the new data. Empty: no change. */
  args: { ...DEAD_WALK, data: 'text', maxEvents: 'int' },
  /** ids: if there are any, only these are looked at. */
  lists: ['ids'],
  reply: (raw: RawWalked) => walked(raw),
});
