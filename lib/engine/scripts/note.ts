import { defineScript } from '../script.js';

export const note = defineScript({
  name: 'note',
  memory: 'refuse',
  keys: ['meta', 'active', 'progress', 'logs', 'events'],
  args: {
    id: 'text',
    name: 'text',
    attempt: 'int',
    progress: 'text',
    log: 'text',
    maxLines: 'int',
    maxEvents: 'int',
  },
  reply: (raw: number) => raw === 1,
});
