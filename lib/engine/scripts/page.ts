import type { StoredJob } from '../../contract/admin-verbs.js';
import { placeOf, storedJob, type RawStoredJob } from '../codec/replies.js';
import { LETTERED_JOBS, STORED_KEYS } from '../keys.js';
import { defineScript } from '../script.js';
import { DEAD_WALK } from '../walks.js';

/**
 * The time, the place after which to continue, how many jobs were looked at, the jobs. If the place was not found, also the
 * length of the list.
 */
type Raw = [number, string, string, number, [string, ...RawStoredJob][] | number];

export const page = defineScript({
  name: 'page',
  memory: 'read',
  keys: [
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    'active',
    'completed',
    'dead',
    ...STORED_KEYS,
    'grouped',
    ...LETTERED_JOBS,
  ],
  /**
   * kind: the key with the jobs. worker: the owner of the set `active`. contains: a text in the id, the name or the last error.
   * where: JSON of values that the data has, empty: any data. skip: how many jobs of a sorted line to skip.
   */
  args: {
    ...DEAD_WALK,
    kind: 'text',
    worker: 'text',
    contains: 'text',
    where: 'text',
    skip: 'int',
    backward: 'int',
    brief: 'int',
  },
  reply: ([, at, id, examined, jobs]: Raw) => {
    if (typeof jobs === 'number') return { missed: jobs, next: null, examined: 0, jobs: [] };
    const read = jobs.map(([jobId, ...fields]): StoredJob => ({ id: jobId, ...storedJob(fields) }));
    return { missed: null, next: placeOf(at, id), examined, jobs: read };
  },
});
