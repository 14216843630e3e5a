import type { EnqueueJob } from './engine.js';
import { EventColumns } from './event-codec.js';
import type { Value } from './script.js';

/**
 * The lists of one enqueue call: jobs by where they go, and the events they make.
 *
 * @param now for the event of a job with a due time, which tells how long that is.
 */
export function encodeJobs(
  jobs: readonly EnqueueJob[],
  withEvents: boolean,
  now: number,
): Record<'plain' | 'ranked' | 'later' | 'times' | 'priorities' | 'said', Value[]> {
  const lists = {
    plain: [] as Value[],
    ranked: [] as Value[],
    later: [] as Value[],
    times: [] as Value[],
    priorities: [] as Value[],
    said: [] as Value[],
  };
  for (const job of jobs) {
    if (isLater(job)) {
      lists.later.push(job.id, job.body);
      lists.times.push(job.dueAt ?? `+${job.delayMs ?? 0}`);
      if (job.priority) lists.priorities.push(job.id, job.priority);
    } else if (job.priority) {
      lists.ranked.push(job.id, job.body, job.priority);
    } else {
      lists.plain.push(job.id, job.body);
    }
  }
  if (withEvents) say(jobs, lists.said, now);
  return lists;
}

function isLater(job: EnqueueJob): boolean {
  return Boolean(job.delayMs) || job.dueAt !== undefined;
}

function say(jobs: readonly EnqueueJob[], fields: Value[], now: number): void {
  const added = new EventColumns('added');
  const delayed = new EventColumns('delayed');
  for (const job of jobs) {
    if (isLater(job)) {
      const delayMs = job.delayMs ?? Math.max(0, Math.ceil(job.dueAt! - now));
      delayed.add(job.id).with('name', job.name).with('delay', delayMs);
    } else {
      added.add(job.id).with('name', job.name);
    }
  }
  added.writeTo(fields);
  delayed.writeTo(fields);
}
