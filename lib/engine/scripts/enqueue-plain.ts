import { defineScript } from '../script.js';

/** The end of a text for `struct.unpack`. */
export const END = '\u0000';

/** Whether the jobs were stored. If not, nothing has changed, and `enqueue` must be called. */
export const enqueuePlain = defineScript({
  name: 'enqueue-plain',
  memory: 'refuse',
  keys: ['meta', 'wait', 'events', 'doorbell', 'lane', 'bodies'],
  /**
   * `RedisAdds` writes the arguments in this order, without `encode`. jobs: their number. ids, bodies: if there are several,
   * `END` follows each. names: one per line, or a single one for all.
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
