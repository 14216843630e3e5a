import { walked, type RawWalked } from '../replies.js';
import { defineScript } from '../script.js';
import { DEAD_WALK } from '../walks.js';

export const retryDead = defineScript({
  name: 'retry-dead',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'dead',
    'attempts',
    'stalls',
    'failures',
    'progress',
    'logs',
    'priorities',
    'cancels',
    'events',
    'doorbell',
  ],
  args: { ...DEAD_WALK, maxEvents: 'int' },
  /** ids: id; where there are any, only these are looked at. */
  lists: ['ids'],
  uses: ['clock', 'say', 'steps', 'names', 'traces', 'ring', 'walk', 'dead'],
  reply: (raw: RawWalked) => walked(raw),
});
