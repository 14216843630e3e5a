import { defineScript } from '../script.js';

export const publish = defineScript({
  name: 'publish',
  memory: 'refuse',
  keys: ['meta', 'events'],
  args: { name: 'text', payload: 'text', maxEvents: 'int' },
  reply: () => undefined,
});
