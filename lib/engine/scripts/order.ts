import { defineScript } from '../script.js';

export const order = defineScript({
  name: 'order',
  memory: 'allow',
  keys: ['processes', 'processInfo'],
  args: { process: 'text', id: 'text', order: 'text', maxBytes: 'int' },
  reply: (raw: number) => raw === 1,
});
