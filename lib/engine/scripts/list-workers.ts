import { defineScript } from '../script.js';

/** What a process says of itself, and for how long that holds; negative: it is gone. */
export interface ProcessEntry {
  readonly process: string;
  readonly info: string;
  readonly endsInMs: number;
}

export const listWorkers = defineScript({
  name: 'list-workers',
  memory: 'read',
  keys: ['processes', 'processInfo'],
  args: { cursor: 'text', count: 'int' },
  reply: ([cursor, ids, infos, ends]: readonly [string, string[], string[], number[]]) => ({
    cursor,
    entries: ids.map((process, i): ProcessEntry => ({ process, info: infos[i]!, endsInMs: ends[i]! })),
  }),
});
