import { defineScript } from '../script.js';
import type { JobCounts } from '../../job/job-state.js';

type Raw = ['again'] | ['counts', number, number, number, number, number, number, number];

export const counts = defineScript({
  name: 'counts',
  memory: 'read',
  keys: ['meta', 'workers', 'wait', 'suspects', 'prioritized', 'delayed', 'completed', 'dead', 'grouped'],
  args: { workers: 'text' },
  moreKeys: true,
  reply: (raw: Raw): 'again' | (JobCounts & { paused: boolean }) => {
    if (raw[0] === 'again') return 'again';
    const [, waiting, delayed, active, completed, dead, paused, cancelled] = raw;
    return { waiting, delayed, active, completed, dead, cancelled, paused: paused === 1 };
  },
});
