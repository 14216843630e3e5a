import type { FireAnswer } from '../../contract/schedule-verbs.js';
import { ms } from '../codec/replies.js';
import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';

export const fire = defineScript({
  name: 'fire',
  memory: 'refuse',
  keys: [
    'meta',
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    ...TRACE_KEYS,
    'dead',
    'completed',
    'results',
    'upcoming',
    'firings',
    'events',
    'doorbell',
    'grouped',
    ...LETTERED_JOBS,
  ],
  /** keep: as in `cancel`. */
  args: { keep: 'int', maxEvents: 'int' },
  /**
   * schedules: id, revision and next time as they were read, new next time or -1, limit or -1, overlap, interval that counts from
   * the end of the last run or -1, number of its jobs. jobs: id, body, time of the occurrence, time from which it may run,
   * priority.
   */
  lists: ['schedules', 'jobs'],
  reply: ([due, next, made]: [number, number, number[]]): FireAnswer => ({
    due,
    nextInMs: ms(next),
    made: made.map(ms),
  }),
});
