import { defineScript } from '../script.js';

/** Whether the transaction shall store its jobs. */
export const enqueueBegin = defineScript({
  name: 'enqueue-begin',
  memory: 'refuse',
  keys: ['meta', 'bodies', 'wait', 'events', 'doorbell', 'lane', 'undo'],
  /** jobs: their number. ids, names: one per line, or a single name for all. */
  args: { seq: 'int', rememberMs: 'digits', maxEvents: 'int', jobs: 'int', ids: 'text', names: 'text' },
  reply: (raw: 0 | 1): boolean => raw === 1,
});
