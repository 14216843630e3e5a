import { defineScript } from '../script.js';
import type { BeatAnswer } from '../engine.js';

export const beat = defineScript({
  name: 'beat',
  memory: 'allow',
  keys: ['workers', 'worker', 'active'],
  args: { worker: 'text', leaseMs: 'int', recordMs: 'int' },
  uses: ['clock'],
  reply: (raw: ['alive', number, number] | ['unknown-worker']): BeatAnswer =>
    raw[0] === 'alive' ? { kind: 'alive', held: raw[1], seq: raw[2] } : { kind: 'unknown-worker' },
});
