import type { QueueEngine } from '#lib/contract/engine.js';
import type {
  FireSchedule,
  OccurrenceJob,
  PutSchedule,
  StoredSchedule,
} from '#lib/contract/schedule-verbs.js';
import { QUEUE } from './support.js';

/** Anything that has an engine. */
interface Scheduling {
  readonly engine: Pick<QueueEngine, 'schedules'>;
}

/** A schedule whose record no script reads. */
export const putting = (id: string, more: Partial<PutSchedule> = {}): PutSchedule => ({
  id,
  revision: 0,
  record: `record of ${id}`,
  nextAt: 1_000,
  ...more,
});

/** Puts schedules that are due since 1970, unless `more` says otherwise. */
export async function put(
  q: Scheduling,
  id: string,
  more: Partial<PutSchedule> = {},
): Promise<StoredSchedule> {
  const answer = await q.engine.schedules.put(QUEUE, putting(id, more));
  if (answer !== 'written') throw new Error(`${id} was not written`);
  return seen(q, id);
}

export async function seen(q: Scheduling, id: string): Promise<StoredSchedule> {
  const { schedule } = await q.engine.schedules.get(QUEUE, id);
  if (!schedule) throw new Error(`there is no schedule ${id}`);
  return schedule;
}

export const tick = (id: string, more: Partial<OccurrenceJob> = {}): OccurrenceJob => ({
  id,
  body: `work\n{"of":${JSON.stringify(id)}}`,
  at: 1_000,
  dueAt: 1_000,
  ...more,
});

/** Fires a schedule as it was seen. */
export const firing = (
  { id, revision, nextAt }: StoredSchedule,
  jobs: readonly OccurrenceJob[],
  more: Partial<FireSchedule> = {},
): FireSchedule => ({
  id,
  revision,
  seenAt: nextAt ?? -1,
  nextAt: 2_000,
  limit: null,
  overlap: 'allow',
  jobs,
  ...more,
});
