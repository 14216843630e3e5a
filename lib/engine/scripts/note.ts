import { defineScript } from '../script.js';

export const note = defineScript({
  name: 'note',
  memory: 'refuse',
  keys: ['meta', 'active', 'progress', 'largeProgress', 'logs', 'large', 'events'],
  args: {
    id: 'text',
    name: 'text',
    attempt: 'int',
    progress: 'text',
    log: 'text',
    logsMax: 'int',
    maxEvents: 'int',
    eventsMaxBytes: 'int',
    progressMaxBytes: 'int',
  },
  reply: (raw: number) => raw === 1,
});
