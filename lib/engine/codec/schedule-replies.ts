import type { StoredSchedule } from '../../contract/schedule-verbs.js';
import { ms } from './replies.js';

/** Id, record, revision, mode, next, fired, last, job, created, whether there is a record. */
export type RawSchedule = [string, string, number, string, string, number, number, string, string, number];

export function readSchedule(raw: RawSchedule): StoredSchedule {
  const [id, record, revision, mode, next, fired, last, job, created] = raw;
  return {
    id,
    record,
    revision,
    mode: mode === '' ? 'running' : (mode as StoredSchedule['mode']),
    nextAt: ms(Number(next)),
    fired,
    lastAt: ms(last),
    lastJob: job || null,
    createdAt: Math.max(0, Number(created)),
  };
}
