import type { BeatAnswer, RecoverAnswer } from '../../contract/engine.js';
import { defineScript, mapOf } from '../script.js';

type RawBeat = ['alive', number, number, string[]] | ['unknown-worker'];

export const beat = defineScript({
  name: 'beat',
  memory: 'allow',
  args: { worker: 'text', leaseMs: 'int' },
  reply: (raw: RawBeat): BeatAnswer => {
    if (raw[0] !== 'alive') return { kind: 'unknown-worker' };
    const [kind, held, exchanges, marks] = raw;
    return { kind, held, exchanges, cancels: mapOf(marks) };
  },
});

export const overdue = defineScript({
  name: 'overdue',
  memory: 'read',
  args: { withinMs: 'int', leaseMs: 'int' },
  reply: (raw: (string | number)[]): { worker: string; endsInMs: number }[] => {
    const answer: { worker: string; endsInMs: number }[] = [];
    for (let i = 0; i < raw.length; i += 2)
      answer.push({ worker: String(raw[i]), endsInMs: Number(raw[i + 1]) });
    return answer;
  },
});

type RawRecover =
  ['alive'] | ['doubted', number] | ['recovered', string[], string[], string[], string[], number];

export const recover = defineScript({
  name: 'recover',
  memory: 'allow',
  args: {
    worker: 'text',
    leaseMs: 'int',
    beatMs: 'int',
    maxStalls: 'int',
    limit: 'int',
    maxEvents: 'int',
    deadMax: 'int',
    deadAge: 'int',
  },
  reply: (raw: RawRecover): RecoverAnswer => {
    switch (raw[0]) {
      case 'alive':
        return { kind: 'alive' };
      case 'doubted':
        return { kind: 'doubted', againInMs: raw[1] };
      case 'recovered': {
        const [kind, waiting, suspects, dead, cancelled, more] = raw;
        return { kind, waiting, suspects, dead, cancelled, more: more === 1 };
      }
    }
  },
});
