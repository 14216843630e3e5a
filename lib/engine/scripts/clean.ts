import { walked, type RawWalked } from '../codec/replies.js';
import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';
import { DEAD_WALK } from '../walks.js';

export const clean = defineScript({
  name: 'clean',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    'dead',
    'completed',
    'results',
    ...TRACE_KEYS,
    'events',
    'grouped',
    ...LETTERED_JOBS,
  ],
  /** kind: the key with the jobs. Name, reason and `newerThan` apply to dead jobs only. */
  args: { ...DEAD_WALK, kind: 'text', maxEvents: 'int' },
  /** ids: ids of dead jobs. If there are any, only these are looked at. */
  lists: ['ids'],
  reply: (raw: RawWalked) => walked(raw),
});
