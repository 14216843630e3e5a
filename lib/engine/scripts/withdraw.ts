import { defineScript } from '../script.js';

export const withdraw = defineScript({
  name: 'withdraw',
  memory: 'allow',
  keys: ['declarers'],
  args: { declaration: 'text' },
  reply: () => undefined,
});
