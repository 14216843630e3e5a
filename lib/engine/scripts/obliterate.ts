import { QUEUE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';

export const obliterate = defineScript({
  name: 'obliterate',
  memory: 'allow',
  keys: QUEUE_KEYS,
  args: { force: 'int', workers: 'text' },
  /** The active set and the record of each worker, then the counters of each day and of each hour. */
  moreKeys: true,
  reply: (raw: 'again' | 'obliterated' | 'active') => raw,
});
