import type { UpdateAnswer } from '../../contract/admin-verbs.js';
import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';

type Raw = [Exclude<UpdateAnswer['kind'], 'updated'> | 'again'] | ['updated', string, string];

export const update = defineScript({
  name: 'update',
  memory: 'refuse',
  keys: [
    'meta',
    'jobs',
    'workers',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    'priorities',
    'dead',
    'completed',
    'events',
    'doorbell',
    'grouped',
    ...LETTERED_JOBS,
  ],
  /**
   * worker: the worker that runs the job and calls. Empty: another caller, and `workers` has all workers. name: only for a job of
   * this name. data: empty for no change. seen, options: its line of options before and after. due: ms, or `+` and ms from now;
   * empty for no change. priority: -1 for no change.
   */
  args: {
    id: 'text',
    worker: 'text',
    workers: 'text',
    name: 'text',
    data: 'text',
    hasOptions: 'int',
    seen: 'text',
    options: 'text',
    due: 'text',
    priority: 'int',
    maxEvents: 'int',
  },
  /** The active set of `worker`, or of each of `workers`. */
  moreKeys: true,
  reply: (raw: Raw): 'again' | UpdateAnswer => {
    if (raw[0] === 'again') return raw[0];
    if (raw[0] !== 'updated') return { kind: raw[0] };
    const [kind, state, due] = raw;
    return {
      kind,
      state: state as 'waiting' | 'delayed' | 'active',
      dueAt: due === '' ? null : Math.floor(Number(due)),
    };
  },
});
