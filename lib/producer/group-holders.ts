import type { QueueEngine } from '../contract/engine.js';
import type { JobState } from '../job/job-state.js';

/** What a person does about the job that holds a group in strict order. */
export const ADVICE: Partial<Record<JobState, string>> = {
  active: 'it runs',
  delayed: 'it waits for its next attempt',
  dead: 'it is dead, so retry or remove it',
};

/** The states of the jobs that hold groups in strict order, by the id of the job. */
export async function holderStates(
  engine: QueueEngine,
  queue: string,
  groups: readonly { readonly holder: string | null }[],
): Promise<ReadonlyMap<string, JobState>> {
  const ids = [...new Set(groups.flatMap(({ holder }) => holder ?? []))];
  const found = await Promise.all(ids.map((id) => engine.admin.get(queue, id)));
  return new Map(found.flatMap((job) => (job ? [[job.id, job.state] as const] : [])));
}
