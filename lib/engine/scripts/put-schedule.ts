import { defineScript } from '../script.js';

export const putSchedule = defineScript({
  name: 'put-schedule',
  memory: 'refuse',
  keys: ['upcoming', 'schedules', 'firings', 'scheduleOrder', 'doorbell'],
  /** `next`: ms since 1970, -1 for none. */
  args: { id: 'text', revision: 'int', record: 'text', keep: 'int', next: 'int' },
  reply: (raw: 'written' | 'changed') => raw,
});
