import { defineScript } from '../script.js';

export const withdraw = defineScript({
  name: 'withdraw',
  memory: 'allow',
  keys: ['declarations'],
  args: { declaration: 'text' },
  reply: () => undefined,
});
