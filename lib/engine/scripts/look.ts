import { defineScript } from '../script.js';
import { ms } from '../codec/replies.js';

/** What was found in one of the queues, which is given by its index. */
export interface Found {
  readonly place: number;
  readonly work: boolean;
  readonly dueInMs: number | null;
  readonly leaseInMs: number | null;
  readonly scheduleInMs: number | null;
}

const FIELDS = 5;

export const look = defineScript({
  name: 'look',
  memory: 'read',
  keys: [],
  keysOfQueues: ['meta', 'wait', 'suspects', 'prioritized', 'grouped', 'delayed', 'workers', 'upcoming'],
  /** known: how many of the queues had something at the last look. They come first. */
  args: { known: 'int' },
  /** workers: for each queue the worker that asks. */
  lists: ['workers'],
  reply: (raw: number[]): Found[] =>
    Array.from({ length: raw.length / FIELDS }, (_, i) => {
      const [place = 0, work = 0, due = -1, lease = -1, schedule = -1] = raw.slice(i * FIELDS);
      return { place, work: work === 1, dueInMs: ms(due), leaseInMs: ms(lease), scheduleInMs: ms(schedule) };
    }),
});
