import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';

export const deadThatFit = defineScript({
  name: 'dead-that-fit',
  memory: 'read',
  keys: ['jobs', 'dead', 'failures', ...LETTERED_JOBS],
  args: { passed: 'int', bytes: 'int', most: 'int', examine: 'int' },
  reply: ([passed, bytes, isEnd]: readonly [number, number, number]) => ({
    passed,
    bytes,
    isEnd: isEnd === 1,
  }),
});
