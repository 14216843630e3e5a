import { defineScript } from '../script.js';

export const pauseSchedule = defineScript({
  name: 'pause-schedule',
  memory: 'allow',
  keys: ['upcoming', 'schedules', 'firings'],
  args: { id: 'text' },
  reply: (raw: 'paused' | 'unchanged' | 'not-found') => raw,
});
