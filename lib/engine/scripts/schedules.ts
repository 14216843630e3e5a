import type { DeclareAnswer, PutOutcome, RenewAnswer } from '../../contract/declaration-verbs.js';
import type { DueAnswer, FireAnswer } from '../../contract/schedule-verbs.js';
import { type RawSchedule, ms, readSchedule } from '../codec/replies.js';
import { defineScript } from '../script.js';

export const putSchedule = defineScript({
  name: 'put-schedule',
  memory: 'refuse',
  /** `next`: ms since 1970, -1 for none. */
  args: { id: 'text', revision: 'int', record: 'text', keep: 'int', next: 'int' },
  reply: (raw: 'written' | 'changed') => raw,
});

export const removeSchedule = defineScript({
  name: 'remove-schedule',
  memory: 'allow',
  args: { id: 'text' },
  reply: (raw: number) => raw === 1,
});

export const pauseSchedule = defineScript({
  name: 'pause-schedule',
  memory: 'allow',
  args: { id: 'text' },
  reply: (raw: 'paused' | 'unchanged' | 'not-found') => raw,
});

export const resumeSchedule = defineScript({
  name: 'resume-schedule',
  memory: 'allow',
  /** `next`: ms since 1970, -1 for none. */
  args: { id: 'text', revision: 'int', next: 'int' },
  reply: (raw: 'resumed' | 'unchanged' | 'changed' | 'not-found') => raw,
});

export const schedules = defineScript({
  name: 'schedules',
  memory: 'read',
  /** Either an id, or '' and a page. */
  args: { id: 'text', offset: 'int', limit: 'int' },
  reply: ([now, total, views]: [number, number, RawSchedule[]]) => ({
    now,
    total,
    schedules: views.map(readSchedule),
  }),
});

export const declare = defineScript({
  name: 'declare',
  memory: 'refuse',
  /** `ids`: all ids of the set, one per line. */
  args: { declaration: 'text', owner: 'text', ids: 'text', ttlMs: 'int' },
  /** For each schedule to write: id, revision, record, whether the next time stays, and the next time or -1. */
  lists: ['puts'],
  reply: ([outcomes, removed, idle]: [PutOutcome[], string[], number]): DeclareAnswer => ({
    outcomes,
    removed,
    idle: idle === 1,
  }),
});

export const withdraw = defineScript({
  name: 'withdraw',
  memory: 'allow',
  args: { declaration: 'text' },
  reply: () => undefined,
});

type RawRenew = ['unknown'] | ['renewed', string[], number, number];

export const renew = defineScript({
  name: 'renew',
  memory: 'allow',
  args: { declaration: 'text', owner: 'text', ttlMs: 'int' },
  reply: (raw: RawRenew): RenewAnswer =>
    raw[0] === 'unknown'
      ? { kind: 'unknown' }
      : { kind: 'renewed', removed: raw[1], shifted: raw[2] > 0, idle: raw[3] === 1 },
});

export const dueSchedules = defineScript({
  name: 'due-schedules',
  memory: 'read',
  args: { offset: 'int', limit: 'int' },
  reply: ([now, next, views]: [number, number, RawSchedule[]]): DueAnswer => ({
    now,
    nextInMs: ms(next),
    due: views.map(readSchedule),
  }),
});

export const fire = defineScript({
  name: 'fire',
  memory: 'refuse',
  /** keep: as in `cancel`. */
  args: { keep: 'int', maxEvents: 'int' },
  /**
   * schedules: id, revision and next time as they were read, new next time or -1, limit or -1, overlap, interval that counts from
   * the end of the last run or -1, number of its jobs. jobs: id, body, time of the occurrence, time from which it may run,
   * priority.
   */
  lists: ['schedules', 'jobs'],
  reply: ([due, next, made]: [number, number, number[]]): FireAnswer => ({
    due,
    nextInMs: ms(next),
    made: made.map(ms),
  }),
});
