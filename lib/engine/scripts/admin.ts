import type {
  CancelAnswer,
  PromoteAnswer,
  RemoveAnswer,
  StoredJob,
  UpdateAnswer,
  QueueCounts,
} from '../../contract/admin-verbs.js';
import { type RawStoredJob, placeOf, storedJob } from '../codec/replies.js';
import { QUEUE_KEYS } from '../keys.js';
import { defineScript } from '../script.js';
import { DEAD_WALK } from '../walks.js';

export const get = defineScript({
  name: 'get',
  memory: 'read',
  args: { id: 'text', workers: 'text', brief: 'int' },
  reply: (raw: ['none'] | ['again'] | ['job', ...RawStoredJob]): 'again' | null | Omit<StoredJob, 'id'> => {
    if (raw[0] === 'again') return 'again';
    if (raw[0] === 'none') return null;
    const [, ...fields] = raw;
    return storedJob(fields);
  },
});

/**
 * The time, the place after which to continue, how many jobs were looked at, the jobs. If the place was not found, also the
 * length of the list.
 */
type RawPage = [number, string, string, number, [string, ...RawStoredJob][] | number];

export const page = defineScript({
  name: 'page',
  memory: 'read',
  /**
   * kind: the key with the jobs. worker: the owner of the set `active`. group: empty: any group. contains: a text in the id, the name or the last error.
   * where: JSON of values that the data has, empty: any data. priorityFrom: -1: any priority. skip: how many jobs of a sorted line to skip.
   */
  args: {
    ...DEAD_WALK,
    kind: 'text',
    worker: 'text',
    group: 'text',
    contains: 'text',
    where: 'text',
    priorityFrom: 'int',
    priorityTo: 'int',
    skip: 'int',
    backward: 'int',
    brief: 'int',
  },
  reply: ([, at, id, examined, jobs]: RawPage) => {
    if (typeof jobs === 'number') return { missed: jobs, next: null, examined: 0, jobs: [] };
    const read = jobs.map(([jobId, ...fields]): StoredJob => ({ id: jobId, ...storedJob(fields) }));
    return { missed: null, next: placeOf(at, id), examined, jobs: read };
  },
});

type RawCounts = ['again'] | ['counts', number, number, number, number, number, number, number, number];

export const counts = defineScript({
  name: 'counts',
  memory: 'read',
  args: { workers: 'text' },
  reply: (raw: RawCounts): 'again' | QueueCounts => {
    if (raw[0] === 'again') return 'again';
    const [, waiting, delayed, active, completed, dead, paused, cancelled, limited] = raw;
    const flags = { paused: paused === 1, isLimited: limited === 1 };
    return { waiting, delayed, active, completed, dead, cancelled, ...flags };
  },
});

export const oldest = defineScript({
  name: 'oldest',
  memory: 'read',
  args: { look: 'int' },
  reply: ([now, heads]: readonly [number, readonly string[]]) => ({ now, heads }),
});

/** The counters of one day. */
export const stats = defineScript({
  name: 'stats',
  memory: 'read',
  args: {},
  /** Fields and values alternately. */
  reply: (raw: readonly string[]) => raw,
});

/** Adds the counters of one process to those of an hour. */
export const countMinutes = defineScript({
  name: 'count-minutes',
  memory: 'refuse',
  /** maxFields: the most rows. Further names share the empty name. */
  args: { lane: 'text', seq: 'int', maxFields: 'int' },
  /** For each row: its field, and its numbers. */
  lists: ['fields', 'counts'],
  reply: () => undefined,
});

export const cancel = defineScript({
  name: 'cancel',
  memory: 'allow',
  /** keep: ms, for a job without this option. bytes: about how much to read of the bodies. */
  args: { reason: 'text', keep: 'int', bytes: 'int', workers: 'text', maxEvents: 'int' },
  lists: ['ids'],
  /** An empty answer: ask again for this job. */
  reply: (raw: 'again' | (CancelAnswer | '')[]) => raw,
});

export const remove = defineScript({
  name: 'remove',
  memory: 'allow',
  args: { bytes: 'int', workers: 'text', maxEvents: 'int' },
  lists: ['ids'],
  /** An empty answer: ask again for this job. */
  reply: (raw: 'again' | (RemoveAnswer | '')[]) => raw,
});

export const promoteNow = defineScript({
  name: 'promote-now',
  memory: 'allow',
  args: { id: 'text' },
  reply: (raw: PromoteAnswer) => raw,
});

type RawUpdate = [Exclude<UpdateAnswer['kind'], 'updated'> | 'again'] | ['updated', string, string];

export const update = defineScript({
  name: 'update',
  memory: 'refuse',
  /**
   * worker: the worker that runs the job and calls. Empty: another caller, and `workers` has all workers. name: only for a job of
   * this name. data: empty for no change. seenData: only for a job with this data; empty for any. seen, options: its line of options
   * before and after. due: ms, or `+` and ms from now; empty for no change. priority: -1 for no change.
   */
  args: {
    id: 'text',
    worker: 'text',
    workers: 'text',
    name: 'text',
    data: 'text',
    seenData: 'text',
    hasOptions: 'int',
    seen: 'text',
    options: 'text',
    due: 'text',
    priority: 'int',
    maxEvents: 'int',
  },
  /** The active set of `worker`, or of each of `workers`. */
  reply: (raw: RawUpdate): 'again' | UpdateAnswer => {
    if (raw[0] === 'again') return raw[0];
    if (raw[0] !== 'updated') return { kind: raw[0] };
    const [kind, state, due] = raw;
    return {
      kind,
      state: state as 'waiting' | 'delayed' | 'active',
      dueAt: due === '' ? null : Math.floor(Number(due)),
    };
  },
});

export const pause = defineScript({
  name: 'pause',
  memory: 'allow',
  args: { pause: 'int', maxEvents: 'int' },
  reply: (raw: number): boolean => raw === 1,
});

export const publish = defineScript({
  name: 'publish',
  memory: 'refuse',
  args: { name: 'text', payload: 'text', maxEvents: 'int' },
  reply: () => undefined,
});

export const obliterate = defineScript({
  name: 'obliterate',
  memory: 'allow',
  keys: QUEUE_KEYS,
  args: { force: 'int', workers: 'text' },
  /** The active set and the record of each worker, then the counters of each day and of each hour. */
  reply: (raw: 'again' | 'obliterated' | 'active') => raw,
});
