import type { LeadAnswer } from '../../contract/process-verbs.js';
import { defineScript } from '../script.js';

export const lead = defineScript({
  name: 'lead',
  memory: 'allow',
  keys: ['alerts'],
  /** `leaseMs` 0: it gives the lead away. `state` empty: it stays. */
  args: { owner: 'text', leaseMs: 'int', state: 'text', keepMs: 'int' },
  reply: ([isLeader, state]: readonly [number, string]): LeadAnswer => ({ isLeader: isLeader === 1, state }),
});
