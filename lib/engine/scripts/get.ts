import { STORED_KEYS } from '../keys.js';
import { defineScript } from '../script.js';
import { storedJob, type RawStoredJob } from '../codec/replies.js';
import type { StoredJob } from '../../contract/admin-verbs.js';

export const get = defineScript({
  name: 'get',
  memory: 'read',
  keys: ['bodies', 'workers', 'delayed', 'dead', 'completed', ...STORED_KEYS],
  args: { id: 'text', workers: 'text' },
  moreKeys: true,
  reply: (raw: ['none'] | ['again'] | ['job', ...RawStoredJob]): 'again' | null | Omit<StoredJob, 'id'> => {
    if (raw[0] === 'again') return 'again';
    if (raw[0] === 'none') return null;
    const [, ...fields] = raw;
    return storedJob(fields);
  },
});
