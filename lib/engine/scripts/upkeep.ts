import type { KeptOut } from '../../contract/upkeep-verbs.js';
import { type RawWalked, walked } from '../codec/replies.js';
import { defineScript } from '../script.js';
import { DEAD_WALK } from '../walks.js';

export const retryDead = defineScript({
  name: 'retry-dead',
  memory: 'allow',
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

/** From a list of ids and holders alternately. */
function pairsOf(list: readonly string[]): readonly KeptOut[] {
  return list.flatMap((id, i) => (i % 2 === 0 ? [{ id, holder: list[i + 1]! }] : []));
}

export const clean = defineScript({
  name: 'clean',
  memory: 'allow',
  /** kind: the key with the jobs. Name, reason and `newerThan` apply to dead jobs only. */
  args: { ...DEAD_WALK, kind: 'text', maxEvents: 'int' },
  /** ids: ids of dead jobs. If there are any, only these are looked at. */
  lists: ['ids'],
  reply: (raw: RawWalked) => walked(raw),
});

export const freeKeys = defineScript({
  name: 'free-keys',
  memory: 'allow',
  /** cursor: of a walk through all keys, '0' at first. '' for none. */
  args: { cursor: 'text' },
  lists: ['digests'],
  /** The cursor of the next step ('0' at the end), and how many keys were freed. */
  reply: ([cursor, changed]: [string, number]) => ({ cursor, changed }),
});

export const overgrown = defineScript({
  name: 'overgrown',
  memory: 'read',
  keysOfQueues: ['completed', 'dead', 'events', 'unique'],
  args: {},
  /** limits, for each queue: most completed, most dead, age of dead jobs, age of events (-1: any). */
  lists: ['limits'],
  reply: (raw: readonly number[]) => raw.map((found) => ({ isOver: found % 2 === 1, hasKeys: found >= 2 })),
});

export const deadThatFit = defineScript({
  name: 'dead-that-fit',
  memory: 'read',
  args: { passed: 'int', bytes: 'int', most: 'int', examine: 'int' },
  reply: ([passed, bytes, isEnd]: readonly [number, number, number]) => ({
    passed,
    bytes,
    isEnd: isEnd === 1,
  }),
});

export const trim = defineScript({
  name: 'trim',
  memory: 'allow',
  /** eventsAge: -1 if events of any age are kept. */
  args: { maxEvents: 'int', eventsAge: 'int', deadMax: 'int', deadAge: 'int', completedMax: 'int' },
  reply: (trimmed: number) => trimmed,
});
