import { defineScript } from '../script.js';

export const pause = defineScript({
  name: 'pause',
  memory: 'allow',
  keys: ['meta', 'events', 'doorbell'],
  args: { pause: 'int', maxEvents: 'int' },
  reply: (raw: number): boolean => raw === 1,
});
