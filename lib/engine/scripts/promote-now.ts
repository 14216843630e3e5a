import { defineScript } from '../script.js';

export const promoteNow = defineScript({
  name: 'promote-now',
  memory: 'allow',
  keys: ['meta', 'bodies', 'wait', 'prioritized', 'delayed', 'priorities', 'doorbell'],
  args: { id: 'text' },
  reply: (raw: 'promoted' | 'not-found' | 'not-delayed') => raw,
});
