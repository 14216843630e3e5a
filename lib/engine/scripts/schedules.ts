import { readSchedule, type RawSchedule } from '../codec/replies.js';
import { defineScript } from '../script.js';

export const schedules = defineScript({
  name: 'schedules',
  memory: 'read',
  keys: ['upcoming', 'schedules', 'firings', 'scheduleOrder'],
  /** Either an id, or '' and a page. */
  args: { id: 'text', offset: 'int', limit: 'int' },
  reply: ([now, total, views]: [number, number, RawSchedule[]]) => ({
    now,
    total,
    schedules: views.map(readSchedule),
  }),
});
