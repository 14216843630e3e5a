import { defineScript } from '../script.js';
import type { RenewAnswer } from '../../contract/declaration-verbs.js';

type Raw = ['unknown'] | ['renewed', string[], number, number];

export const renew = defineScript({
  name: 'renew',
  memory: 'allow',
  keys: ['declarers', 'declaredSets', 'upcoming', 'schedules', 'firings', 'scheduleOrder'],
  args: { declaration: 'text', owner: 'text', ttlMs: 'int' },
  reply: (raw: Raw): RenewAnswer =>
    raw[0] === 'unknown'
      ? { kind: 'unknown' }
      : { kind: 'renewed', removed: raw[1], shifted: raw[2] > 0, idle: raw[3] === 1 },
});
