import { defineScript } from '../script.js';
import type { DispatchAnswer } from '../../contract/task-verbs.js';

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
  keys: ['delayedTasks', 'readyTasks'],
  args: { limit: 'int', perSecond: 'int', maxReady: 'int' },
  reply: (raw: Raw): Answer => {
    if (raw[0] === 'wrong-type') return { kind: 'wrong-type', key: raw[1], type: raw[2] };
    const [kind, dispatched, delayed, ready, dueInMs] = raw;
    return { kind, dispatched, delayed, ready, dueInMs: dueInMs < 0 ? null : dueInMs };
  },
});
