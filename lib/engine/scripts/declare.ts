import { defineScript } from '../script.js';
import type { DeclareAnswer, PutOutcome } from '../../contract/declaration-verbs.js';

export const declare = defineScript({
  name: 'declare',
  memory: 'refuse',
  keys: ['declarers', 'declaredSets', 'upcoming', 'schedules', 'firings', 'scheduleOrder', 'doorbell'],
  /** `ids`: all ids of the set, one per line. */
  args: { declaration: 'text', owner: 'text', ids: 'text', ttlMs: 'int' },
  /** For each schedule to write: id, revision, record, whether the next time stays, and the next time or -1. */
  lists: ['puts'],
  reply: ([outcomes, removed, idle]: [PutOutcome[], string[], number]): DeclareAnswer => ({
    outcomes,
    removed,
    idle: idle === 1,
  }),
});
