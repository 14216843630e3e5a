import type { EnqueueJob } from './engine.js';
import { EventColumns } from './event-codec.js';
import type { Value } from './script.js';

/** The lists of one enqueue call: jobs by where they go, and the events they make, in the order of those lists. */
export function encodeJobs(
  jobs: readonly EnqueueJob[],
  withEvents: boolean,
): Record<'plain' | 'ranked' | 'later' | 'said', Value[]> {
  const lists = { plain: [] as Value[], ranked: [] as Value[], later: [] as Value[], said: [] as Value[] };
  for (const job of jobs) {
    if (job.delayMs || job.dueAt !== undefined) {
      lists.later.push(job.id, job.body, job.dueAt ?? '', job.delayMs ?? 0, job.priority ?? 0);
    } else if (job.priority) {
      lists.ranked.push(job.id, job.body, job.priority);
    } else {
      lists.plain.push(job.id, job.body);
    }
  }
  if (withEvents) {
    const added = new EventColumns('added');
    const delays = lists.later.length > 0;
    for (const job of jobs) {
      added.add(job.id).with('name', job.name);
      if (delays) added.with('delay', job.delayMs ?? 0);
    }
    added.writeTo(lists.said);
  }
  return lists;
}
