import { defineScript } from '../script.js';

export const pauseSchedule = defineScript({
  name: 'pause-schedule',
  memory: 'allow',
  keys: ['schedules', 'schedule', 'firings'],
  args: { id: 'text' },
  reply: (raw: 'paused' | 'unchanged' | 'not-found') => raw,
});
