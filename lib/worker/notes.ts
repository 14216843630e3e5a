import type { Log } from '../contract/log.js';
import type { QueueEngine } from '../contract/engine.js';
import { jobText } from './job-text.js';
import type { Run } from './run.js';

/** Writes what a run says of itself. Answers whether the worker holds its job, as far as that could be learnt. */
export async function writeNote(
  engine: QueueEngine,
  worker: string,
  run: Run,
  what: { progress?: string; log?: string },
  logger: Log,
): Promise<boolean> {
  const { queue, id, name, attempt } = run;
  try {
    return await engine.note(queue, { worker, id, name, attempt, ...what });
  } catch (error) {
    // Progress is for people; that it could not be written must not fail the job.
    logger.debug(`${jobText(queue, id)}: progress or log not written: ${(error as Error).message}`);
    return true;
  }
}
