import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';
import { lines } from '../codec/replies.js';
import type { EnqueueAnswer } from '../../contract/engine.js';

export const enqueue = defineScript({
  name: 'enqueue',
  memory: 'refuse',
  keys: [
    'meta',
    'jobs',
    'wait',
    'prioritized',
    'delayed',
    'priorities',
    'completed',
    'results',
    'failures',
    'progress',
    'logs',
    'events',
    'doorbell',
    ...LETTERED_JOBS,
    'lane',
  ],
  args: { seq: 'int', rememberMs: 'int', jobs: 'int', maxEvents: 'int' },
  /**
   * plain, later: id, body. ranked: id, body, priority. times, one for each of `later`: due ms, or `+` and the ms from now.
   * priorities: id, priority of those of `later` that have one. said: field, value.
   */
  lists: ['plain', 'ranked', 'later', 'times', 'priorities', 'said'],
  reply: (raw: ['stored', string] | ['stale']): EnqueueAnswer =>
    raw[0] === 'stored' ? { kind: 'stored', duplicates: lines(raw[1]) } : { kind: 'stale' },
});
