import type { Duplicate, EnqueueAnswer } from '../../contract/engine.js';
import type { JobState } from '../../job/job-state.js';
import { lines } from '../codec/replies.js';
import { defineScript } from '../script.js';

/** The end of a text for `struct.unpack`. */
export const END = '\u0000';

/** Whether the jobs were stored. If not, nothing has changed, and `enqueue` must be called. */
export const enqueuePlain = defineScript({
  name: 'enqueue-plain',
  memory: 'refuse',
  /**
   * `RedisAdds` writes the arguments in this order, without `encode`. jobs: their number. ids, bodies: if there are several,
   * `END` follows each. names: one per line, or a single one for all.
   */
  args: {
    seq: 'digits',
    rememberMs: 'digits',
    maxEvents: 'int',
    jobs: 'int',
    ids: 'text',
    bodies: 'text',
    names: 'text',
  },
  reply: (raw: 0 | 1): boolean => raw === 1,
});

export const enqueue = defineScript({
  name: 'enqueue',
  memory: 'refuse',
  args: {
    seq: 'int',
    rememberMs: 'int',
    jobs: 'int',
    maxEvents: 'int',
    groups: 'int',
    workers: 'text',
    maxWaiting: 'int',
    onFull: 'text',
  },
  /**
   * plain, head, later: id, body. ranked: id, body, priority. grouped: id, body, line, priority. times, one for each of `later`:
   * due ms, or `+` and ms from now. priorities: id, priority of those of `later` that have one. unique: id, digest of the key, ms
   * for which it counts in any case (0: by the state of its job), states that count, what to do with a duplicate, delay and
   * longest wait of a debounce (0: none), and for `aggregate` the maximum of items and of bytes. holds: id, states of ended jobs that keep the id. eventFields: field, value.
   */
  lists: [
    'plain',
    'head',
    'ranked',
    'later',
    'grouped',
    'times',
    'priorities',
    'unique',
    'holds',
    'eventFields',
  ],
  /** The active set of each of `workers`. */
  /** Or the workers to name in the next call. Then nothing has changed. */
  reply: (
    raw:
      | ['stored' | 'again', string]
      | ['stale']
      | ['queue-full', number, string]
      | ['full', string, string, string, string],
  ): EnqueueAnswer | readonly string[] => {
    if (raw[0] === 'again') return lines(raw[1]);
    if (raw[0] === 'queue-full')
      return { kind: 'queue-full', waiting: raw[1], needNoRoom: new Set(lines(raw[2])) };
    if (raw[0] === 'full') {
      const [, line, size, most, ids] = raw;
      const group = line.slice(2);
      const needNoRoom = new Set(lines(ids));
      return { kind: 'group-full', group, size: Number(size), maxSize: Number(most), needNoRoom };
    }
    return raw[0] === 'stored' ? storedIn(lines(raw[1])) : { kind: 'stale' };
  },
});

/** The last line may be `removed` and how many other jobs made room. */
function storedIn(found: readonly string[]): EnqueueAnswer {
  const removed = Number(/^removed (\d+)$/.exec(found.at(-1) ?? '')?.[1] ?? 0);
  if (removed === 0) return { kind: 'stored', duplicates: found.map(duplicate) };
  return { kind: 'stored', duplicates: found.slice(0, -1).map(duplicate), removed };
}

/**
 * A state (`-`: no job; `dropped`, `parked`: it is about the new job) and an id. For a duplicate by its key also the job that holds the key, `1` if that job was changed, and
 * for `aggregate` `+` with the number of its items.
 */
function duplicate(line: string): Duplicate {
  const space = line.indexOf(' ');
  const state = line.slice(0, space);
  const [id = '', holder, replaced] = line.slice(space + 1).split('\t');
  if (state === 'dropped' || state === 'parked') return { id, [state]: true };
  return {
    id,
    ...(state !== '-' && { state: state as JobState }),
    ...(holder !== undefined && { holder }),
    ...(replaced === '1' && { replaced: true }),
    ...(replaced?.startsWith('+') && { size: Number(replaced) }),
  };
}

/** Whether the transaction shall store its jobs. */
export const enqueueBegin = defineScript({
  name: 'enqueue-begin',
  memory: 'refuse',
  /** jobs: their number. ids, names: one per line, or a single name for all. */
  args: { seq: 'int', rememberMs: 'digits', maxEvents: 'int', jobs: 'int', ids: 'text', names: 'text' },
  reply: (raw: 0 | 1): boolean => raw === 1,
});

/** Whether the jobs of the transaction were kept. */
export const enqueueEnd = defineScript({
  name: 'enqueue-end',
  memory: 'allow',
  args: {},
  reply: (raw: 0 | 1): boolean => raw === 1,
});
