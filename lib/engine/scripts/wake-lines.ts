import { defineScript } from '../script.js';

export const wakeLines = defineScript({
  name: 'wake-lines',
  memory: 'allow',
  keys: ['lineStates', 'ready', 'resting', 'doorbell'],
  args: { cursor: 'text' },
  reply: (cursor: string) => cursor,
});
