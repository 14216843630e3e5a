import { defineScript } from '../script.js';

export const removeSchedule = defineScript({
  name: 'remove-schedule',
  memory: 'allow',
  keys: ['upcoming', 'schedules', 'firings', 'scheduleOrder'],
  args: { id: 'text' },
  reply: (raw: number) => raw === 1,
});
