import { defineScript } from '../script.js';

export const overdue = defineScript({
  name: 'overdue',
  memory: 'read',
  keys: ['workers'],
  args: { withinMs: 'int', leaseMs: 'int' },
  reply: (raw: (string | number)[]): { worker: string; endsInMs: number }[] => {
    const answer: { worker: string; endsInMs: number }[] = [];
    for (let i = 0; i < raw.length; i += 2)
      answer.push({ worker: String(raw[i]), endsInMs: Number(raw[i + 1]) });
    return answer;
  },
});
