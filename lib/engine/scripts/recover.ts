import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';
import type { RecoverAnswer } from '../../contract/engine.js';

type Raw = ['alive'] | ['doubted', number] | ['recovered', string[], string[], string[], string[], number];

export const recover = defineScript({
  name: 'recover',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'workers',
    'worker',
    'active',
    'wait',
    'suspects',
    ...TRACE_KEYS,
    'dead',
    'completed',
    'results',
    'cancelled',
    'events',
    'doorbell',
    'stats',
    ...LETTERED_JOBS,
  ],
  args: {
    worker: 'text',
    leaseMs: 'int',
    beatMs: 'int',
    recordMs: 'int',
    maxStalls: 'int',
    limit: 'int',
    maxEvents: 'int',
    deadMax: 'int',
    deadAge: 'int',
  },
  reply: (raw: Raw): RecoverAnswer => {
    switch (raw[0]) {
      case 'alive':
        return { kind: 'alive' };
      case 'doubted':
        return { kind: 'doubted', againInMs: raw[1] };
      case 'recovered': {
        const [kind, waiting, suspects, dead, cancelled, more] = raw;
        return { kind, waiting, suspects, dead, cancelled, more: more === 1 };
      }
    }
  },
});
