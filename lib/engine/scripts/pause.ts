import { defineScript } from '../script.js';

export const pause = defineScript({
  name: 'pause',
  memory: 'allow',
  keys: ['meta', 'events', 'doorbell', 'workers'],
  args: { pause: 'int', workers: 'text', maxEvents: 'int' },
  moreKeys: true,
  reply: (raw: number | 'again'): boolean | 'again' => (raw === 'again' ? raw : raw === 1),
});
