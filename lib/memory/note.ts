import type { NoteCall } from '../contract/engine.js';
import type { QueueLimits } from '../contract/queue-limits.js';
import type { MemoryQueue } from './memory-queue.js';

const LOG_LINES = 100;

/** What a run says while it runs; a run that lost its job is not heard any more. */
export function note(queue: MemoryQueue, call: NoteCall, limits: QueueLimits): boolean {
  const { id, name, attempt, progress, log } = call;
  const job = queue.workers.get(call.worker)?.held.get(id);
  if (!job) return false;
  if (log) job.logs = [...job.logs, ...log.split('\n')].slice(-LOG_LINES);
  if (progress) {
    job.progress = progress;
    queue.say([{ type: 'progress', id, name, attempt, progress }], limits);
  }
  return true;
}
