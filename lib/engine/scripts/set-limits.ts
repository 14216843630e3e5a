import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';

export const setLimits = defineScript({
  name: 'set-limits',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'workers',
    'limits',
    'lines',
    'lineStates',
    'ready',
    'resting',
    'slots',
    'doorbell',
    ...LETTERED_JOBS,
  ],
  args: { field: 'text', part: 'text', rule: 'text', flags: 'text', workers: 'text' },
  /** The active set of each of `workers`. */
  moreKeys: true,
  reply: (raw: 'again' | 'set') => raw,
});
