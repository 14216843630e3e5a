import { defineScript } from '../script.js';
import type { BeatAnswer } from '../../contract/engine.js';

type Raw = ['alive', number, number, string[], string] | ['unknown-worker'];

export const beat = defineScript({
  name: 'beat',
  memory: 'allow',
  keys: ['workers', 'worker', 'active', 'toCancel'],
  /** heard: of the pause that the worker knows of. */
  args: { worker: 'text', leaseMs: 'int', recordMs: 'int', heard: 'text' },
  reply: (raw: Raw): BeatAnswer => {
    if (raw[0] !== 'alive') return { kind: 'unknown-worker' };
    const [kind, held, exchanges, marks, pauseMark] = raw;
    const cancels = new Map<string, string>();
    for (let i = 0; i < marks.length; i += 2) cancels.set(marks[i]!, marks[i + 1]!);
    return { kind, held, exchanges, cancels, ...(pauseMark !== '' && { pauseMark }) };
  },
});
