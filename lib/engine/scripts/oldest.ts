import { defineScript } from '../script.js';

export const oldest = defineScript({
  name: 'oldest',
  memory: 'read',
  keys: ['jobs', 'wait', 'suspects', 'prioritized', 'attempts'],
  args: { look: 'int' },
  uses: ['clock'],
  reply: ([now, heads]: readonly [number, readonly string[]]) => ({ now, heads }),
});
