import type { KeptOut } from '../../contract/upkeep-verbs.js';
import { walked, type RawWalked } from '../codec/replies.js';
import { LETTERED_JOBS, TRACE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';
import { DEAD_WALK } from '../walks.js';

export const retryDead = defineScript({
  name: 'retry-dead',
  memory: 'allow',
  keys: [
    'meta',
    'jobs',
    'wait',
    'prioritized',
    'dead',
    'completed',
    'delayed',
    'unique',
    ...TRACE_KEYS,
    'events',
    'doorbell',
    ...LETTERED_JOBS,
  ],
  /** data: JSON of the new data. Empty: no change. */
  args: { ...DEAD_WALK, data: 'text', maxEvents: 'int' },
  /** ids: if there are any, only these are looked at. */
  lists: ['ids'],
  /** Also which jobs stay dead, because another job has their key. */
  reply: ([now, at, id, ids, refused]: [...RawWalked, string[]]) => ({
    ...walked([now, at, id, ids]),
    refused: pairsOf(refused),
  }),
});

/** From a list of ids and holders in turn. */
function pairsOf(list: readonly string[]): readonly KeptOut[] {
  return list.flatMap((id, i) => (i % 2 === 0 ? [{ id, holder: list[i + 1]! }] : []));
}
