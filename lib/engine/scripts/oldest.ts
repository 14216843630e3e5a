import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';

export const oldest = defineScript({
  name: 'oldest',
  memory: 'read',
  keys: [
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'grouped',
    'lines',
    'lineStates',
    'ready',
    'attempts',
    ...LETTERED_JOBS,
  ],
  args: { look: 'int' },
  reply: ([now, heads]: readonly [number, readonly string[]]) => ({ now, heads }),
});
