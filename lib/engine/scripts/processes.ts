import type { LeadAnswer } from '../../contract/process-verbs.js';
import type { DispatchAnswer } from '../../contract/task-verbs.js';
import { defineScript } from '../script.js';

export const register = defineScript({
  name: 'register',
  memory: 'allow',
  /** An empty `info` leaves the record as it is. Orders up to the one with the id `obeyed` are deleted. */
  args: { process: 'text', info: 'text', obeyed: 'text', leaseMs: 'int', rememberMs: 'int', keepMs: 'int' },
  reply: ([kind, orders]: readonly ['registered' | 'added' | 'unknown', string]) => ({ kind, orders }),
});

export const unregister = defineScript({
  name: 'unregister',
  memory: 'allow',
  args: { process: 'text' },
  reply: (raw: number) => raw === 1,
});

/** The record of a process, and for how many ms it is valid. Negative: the process is gone. */
export interface ProcessEntry {
  readonly process: string;
  readonly info: string;
  readonly endsInMs: number;
}

export const listWorkers = defineScript({
  name: 'list-workers',
  memory: 'read',
  args: { cursor: 'text', count: 'int' },
  reply: ([cursor, ids, infos, ends]: readonly [string, string[], string[], number[]]) => ({
    cursor,
    entries: ids.map((process, i): ProcessEntry => ({ process, info: infos[i]!, endsInMs: ends[i]! })),
  }),
});

export const order = defineScript({
  name: 'order',
  memory: 'allow',
  args: { process: 'text', id: 'text', order: 'text', maxBytes: 'int' },
  reply: (raw: number) => raw === 1,
});

export const recordAction = defineScript({
  name: 'record-action',
  memory: 'allow',
  /** An empty `queue` means none; an empty `count` means unknown. */
  args: { actor: 'text', action: 'text', queue: 'text', target: 'text', count: 'text', result: 'text' },
  reply: () => undefined,
});

/** An entry of the stream: its id, then fields and values alternately. */
export type ActionEntry = readonly [id: string, fields: readonly string[]];

export const actions = defineScript({
  name: 'actions',
  memory: 'read',
  args: { before: 'text', actor: 'text', queue: 'text', limit: 'int', most: 'int' },
  reply: ([entries, next]: readonly [readonly ActionEntry[], string]) => ({ entries, next }),
});

export const putBulkAct = defineScript({
  name: 'put-bulk-act',
  memory: 'allow',
  args: { id: 'text', before: 'text', after: 'text', keepMs: 'int' },
  reply: (raw: number) => raw === 1,
});

export const bulkActs = defineScript({
  name: 'bulk-acts',
  memory: 'read',
  args: {},
  reply: (raw: readonly string[]) => raw,
});

export const lead = defineScript({
  name: 'lead',
  memory: 'allow',
  /** `leaseMs` 0: it gives the lead away. `state` empty: it stays. */
  args: { owner: 'text', leaseMs: 'int', state: 'text', keepMs: 'int' },
  reply: ([isLeader, state]: readonly [number, string]): LeadAnswer => ({ isLeader: isLeader === 1, state }),
});

type Answer =
  | ({ readonly kind: 'dispatched' } & DispatchAnswer)
  /** Nothing was moved, because the key holds a value of this type. */
  | { readonly kind: 'wrong-type'; readonly key: 'delayedTasks' | 'readyTasks'; readonly type: string };

type Raw =
  | ['dispatched', dispatched: number, delayed: number, ready: number, dueInMs: number]
  | ['wrong-type', key: 'delayedTasks' | 'readyTasks', type: string];

export const dispatch = defineScript({
  name: 'dispatch',
  memory: 'allow',
  args: { limit: 'int', perSecond: 'int', maxReady: 'int' },
  reply: (raw: Raw): Answer => {
    if (raw[0] === 'wrong-type') return { kind: 'wrong-type', key: raw[1], type: raw[2] };
    const [kind, dispatched, delayed, ready, dueInMs] = raw;
    return { kind, dispatched, delayed, ready, dueInMs: dueInMs < 0 ? null : dueInMs };
  },
});
