import { defineScript } from '../script.js';

export const removeSchedule = defineScript({
  name: 'remove-schedule',
  memory: 'allow',
  keys: ['schedules', 'schedule', 'firings', 'scheduled'],
  args: { id: 'text' },
  reply: (raw: number) => raw === 1,
});
