import type { ShareAnswer } from '../../contract/limit-verbs.js';
import { lines } from '../codec/replies.js';
import { defineScript } from '../script.js';

export const share = defineScript({
  name: 'share',
  memory: 'allow',
  /** Keys of the queue without a name. */
  keys: ['limits', 'limitStates', 'shares'],
  /** keep: -1 while it is not known what was claimed. */
  args: {
    queue: 'text',
    worker: 'text',
    seq: 'digits',
    running: 'int',
    want: 'int',
    keep: 'int',
    leaseMs: 'int',
  },
  /** limits: their names. */
  lists: ['limits'],
  reply: ([granted, opensInMs, isFull, woken]: readonly [number, number, number, string]): ShareAnswer => ({
    granted,
    opensInMs: opensInMs > 0 ? opensInMs : null,
    isFull: isFull === 1,
    woken: lines(woken.trimEnd()),
  }),
});
