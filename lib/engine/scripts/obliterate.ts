import { QUEUE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';

export const obliterate = defineScript({
  name: 'obliterate',
  memory: 'allow',
  keys: QUEUE_KEYS,
  args: { force: 'int', workers: 'text' },
  /** For each worker its active set and its record, then the counters of each day and of each hour. */
  moreKeys: true,
  reply: (raw: 'again' | 'obliterated' | 'active') => raw,
});
