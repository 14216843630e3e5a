import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';
import { lines } from '../codec/replies.js';
import type { Duplicate, EnqueueAnswer } from '../../contract/engine.js';

export const enqueue = defineScript({
  name: 'enqueue',
  memory: 'refuse',
  keys: [
    'meta',
    'jobs',
    'wait',
    'suspects',
    'prioritized',
    'delayed',
    'priorities',
    'completed',
    'dead',
    'results',
    'attempts',
    'stalls',
    'failures',
    'progress',
    'logs',
    'workers',
    'events',
    'doorbell',
    'limits',
    'grouped',
    'lines',
    'lineStates',
    'ready',
    ...LETTERED_JOBS,
    'lane',
  ],
  args: { seq: 'int', rememberMs: 'int', jobs: 'int', maxEvents: 'int', workers: 'text' },
  /**
   * plain, head, later: id, body. ranked: id, body, priority. grouped: id, body, line, priority. times, one for each of `later`: due ms,
   * or `+` and the ms from now. priorities: id, priority of those of `later` that have one. holds: id, states of ended jobs that hold it.
   * said: field, value.
   */
  lists: ['plain', 'head', 'ranked', 'later', 'grouped', 'times', 'priorities', 'holds', 'said'],
  /** The active set of each of `workers`. */
  moreKeys: true,
  /** Or the workers to name in the next try; nothing has changed. */
  reply: (
    raw: ['stored' | 'again', string] | ['stale'] | ['full', string, string, string],
  ): EnqueueAnswer | readonly string[] => {
    if (raw[0] === 'again') return lines(raw[1]);
    if (raw[0] === 'full')
      return { kind: 'group-full', group: raw[1].slice(2), size: Number(raw[2]), maxSize: Number(raw[3]) };
    return raw[0] === 'stored'
      ? { kind: 'stored', duplicates: lines(raw[1]).map(duplicate) }
      : { kind: 'stale' };
  },
});

/** A state and an id. */
function duplicate(line: string): Duplicate {
  const space = line.indexOf(' ');
  return { id: line.slice(space + 1), state: line.slice(0, space) as Duplicate['state'] };
}
