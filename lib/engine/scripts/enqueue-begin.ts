import { defineScript } from '../script.js';

/** Whether the jobs that follow in the transaction are to be stored. */
export const enqueueBegin = defineScript({
  name: 'enqueue-begin',
  memory: 'refuse',
  keys: ['meta', 'bodies', 'wait', 'events', 'doorbell', 'lane', 'undo'],
  /** jobs: how many. ids, names: a line each, or one name that all have. */
  args: { seq: 'int', rememberMs: 'digits', maxEvents: 'int', jobs: 'int', ids: 'text', names: 'text' },
  reply: (raw: 0 | 1): boolean => raw === 1,
});
