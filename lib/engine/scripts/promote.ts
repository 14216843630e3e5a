import { defineScript } from '../script.js';
import { ms } from '../codec/replies.js';

export const promote = defineScript({
  name: 'promote',
  memory: 'allow',
  keys: ['meta', 'wait', 'prioritized', 'delayed', 'priorities', 'doorbell'],
  args: { limit: 'int' },
  reply: ([promoted, due]: [number, number]) => ({ promoted, dueInMs: ms(due) }),
});
