import { defineScript } from '../script.js';

export const resumeSchedule = defineScript({
  name: 'resume-schedule',
  memory: 'allow',
  keys: ['upcoming', 'schedules', 'firings', 'doorbell'],
  /** `next`: ms since 1970, -1 for none. */
  args: { id: 'text', revision: 'int', next: 'int' },
  reply: (raw: 'resumed' | 'unchanged' | 'changed' | 'not-found') => raw,
});
