import { defineScript } from '../script.js';

/** Whether the jobs of the transaction were kept. */
export const enqueueEnd = defineScript({
  name: 'enqueue-end',
  memory: 'allow',
  keys: ['bodies', 'wait', 'undo'],
  args: {},
  reply: (raw: 0 | 1): boolean => raw === 1,
});
