import { defineScript } from '../script.js';

export const release = defineScript({
  name: 'release',
  memory: 'allow',
  keys: ['meta', 'jobs', 'active', 'wait', 'suspects', 'stalls', 'workers', 'worker', 'events', 'doorbell'],
  args: { worker: 'text', leave: 'int', maxEvents: 'int' },
  /** ids: id. */
  lists: ['ids'],
  uses: ['clock', 'say', 'steps', 'names', 'ring', 'head'],
  reply: (raw: string[]) => ({ lost: raw }),
});
