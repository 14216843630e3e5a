import { isDeepStrictEqual } from 'node:util';
import type { Queue } from 'godwit';
import type { OldJob, OldState } from './old-queue.js';
import { toGodwit } from './to-godwit.js';

/** Another job already has the id of the old job. */
export class IdTakenError extends Error {
  override name = 'IdTakenError';

  constructor(readonly id: string) {
    super(`another job has the id ${JSON.stringify(id)} here`);
  }
}

/**
 * Adds an old job to the new queue. A second call adds nothing, up to `keep` ms after the job has completed.
 *
 * @throws {IdTakenError} and what `Queue.add` throws; then the old job must stay.
 */
export async function handOn(job: OldJob, state: OldState, to: Queue, keep: number): Promise<void> {
  const { name, data = null } = job;
  const { id, duplicate } = await to.add(name, data, toGodwit(job, state, keep));
  if (!duplicate) return;
  const there = await to.get(id);
  if (there?.name !== name || !isDeepStrictEqual(there.data, data)) throw new IdTakenError(id);
}
