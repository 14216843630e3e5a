import type { DueAnswer } from '../../contract/schedule-verbs.js';
import { ms, readSchedule, type RawSchedule } from '../codec/replies.js';
import { defineScript } from '../script.js';

export const dueSchedules = defineScript({
  name: 'due-schedules',
  memory: 'read',
  keys: ['upcoming', 'schedules', 'firings', 'scheduleOrder'],
  args: { offset: 'int', limit: 'int' },
  reply: ([now, next, views]: [number, number, RawSchedule[]]): DueAnswer => ({
    now,
    nextInMs: ms(next),
    due: views.map(readSchedule),
  }),
});
