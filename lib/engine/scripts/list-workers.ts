import { defineScript } from '../script.js';

/** The record of a process, and for how many ms it is valid. Negative: the process is gone. */
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
