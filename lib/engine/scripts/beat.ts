import { defineScript } from '../script.js';
import type { BeatAnswer } from '../../contract/engine.js';

type Raw = ['alive', number, number, string[]] | ['unknown-worker'];

export const beat = defineScript({
  name: 'beat',
  memory: 'allow',
  keys: ['workers', 'worker', 'active', 'toCancel'],
  args: { worker: 'text', leaseMs: 'int', recordMs: 'int' },
  reply: (raw: Raw): BeatAnswer => {
    if (raw[0] !== 'alive') return { kind: 'unknown-worker' };
    const [kind, held, exchanges, marks] = raw;
    const cancels = new Map<string, string>();
    for (let i = 0; i < marks.length; i += 2) cancels.set(marks[i]!, marks[i + 1]!);
    return { kind, held, exchanges, cancels };
  },
});
