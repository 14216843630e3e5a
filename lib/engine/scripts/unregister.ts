import { defineScript } from '../script.js';

export const unregister = defineScript({
  name: 'unregister',
  memory: 'allow',
  keys: ['processes', 'processInfo'],
  args: { process: 'text' },
  reply: (raw: number) => raw === 1,
});
