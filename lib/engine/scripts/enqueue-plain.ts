import { defineScript } from '../script.js';

/** Whether the jobs are stored; where not, nothing has changed, and `enqueue` knows what to do. */
export const enqueuePlain = defineScript({
  name: 'enqueue-plain',
  memory: 'refuse',
  keys: ['meta', 'jobs', 'wait', 'events', 'doorbell', 'lane'],
  /** names: of the jobs, a line each, or one that all have. */
  args: { seq: 'int', rememberMs: 'int', maxEvents: 'int', names: 'text' },
  /** id, body. */
  lists: ['jobs'],
  reply: (raw: 0 | 1): boolean => raw === 1,
});
