import { defineScript } from '../script.js';

export const pause = defineScript({
  name: 'pause',
  memory: 'allow',
  keys: ['meta', 'events', 'doorbell'],
  args: { pause: 'int', maxEvents: 'int' },
  uses: ['clock', 'say', 'ring'],
  reply: (raw: number) => raw === 1,
});
