import { LETTERED_JOBS } from '../keys.js';
import { deadJob, placeOf, type RawDeadJob } from '../codec/replies.js';
import { defineScript } from '../script.js';
import { DEAD_WALK } from '../walks.js';

export const deadPage = defineScript({
  name: 'dead-page',
  memory: 'read',
  keys: ['jobs', 'dead', 'attempts', 'failures', ...LETTERED_JOBS],
  args: DEAD_WALK,
  reply: ([now, at, id, jobs]: [number, string, string, RawDeadJob[]]) => ({
    now,
    next: placeOf(at, id),
    jobs: jobs.map(deadJob),
  }),
});
