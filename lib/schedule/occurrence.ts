import { createHash } from 'node:crypto';
import { encodeBody } from '../job/job-record.js';
import type { Schedule } from './record.js';

/** The job of one occurrence, as the store takes it. */
export interface Occurrence {
  readonly id: string;
  readonly body: string;
  readonly at: number;
  readonly dueAt: number;
  readonly priority?: number;
}

/** The job that every process would make of the same occurrence. */
export function occurrence(scheduleId: string, schedule: Schedule, at: number, now: number): Occurrence {
  const id = `${scheduleId}@${new Date(at).toISOString()}`;
  const dueAt = at + Math.floor(share(id) * schedule.rule.jitterMs);
  const { options, template } = schedule;
  const body = encodeBody(template.name, now, { ...options, dueAt }, JSON.stringify(template.data));
  return { id, body, at, dueAt, ...(options.priority !== undefined && { priority: options.priority }) };
}

/** Evenly spread from 0 to 1, and the same for the same id. */
function share(id: string): number {
  return createHash('sha1').update(id).digest().readUInt32BE(0) / 2 ** 32;
}
