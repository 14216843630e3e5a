import { defineScript } from '../script.js';

/** What `struct.unpack` takes for the end of a text. */
export const END = '\u0000';

/** Whether the jobs are stored; where not, nothing has changed, and `enqueue` knows what to do. */
export const enqueuePlain = defineScript({
  name: 'enqueue-plain',
  memory: 'refuse',
  keys: ['meta', 'wait', 'events', 'doorbell', 'lane', 'bodies'],
  /**
   * `RedisAdds` writes them in this order, without `encode`. jobs: how many. ids, bodies: of several, each with `END` behind it. names: a
   * line each, or one that all have.
   */
  args: {
    seq: 'digits',
    rememberMs: 'digits',
    maxEvents: 'int',
    jobs: 'int',
    ids: 'text',
    bodies: 'text',
    names: 'text',
  },
  reply: (raw: 0 | 1): boolean => raw === 1,
});
