import type { EnqueueJob } from './engine.js';
import { fold, writeGroup } from './event-codec.js';
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

/**
 * Ids and bodies one after the other, and the names as an event has them, of jobs without an order or a time of their own; null
 * where one has. Null too where one of several may be there already: they would be sent a second time, and what is added behind
 * them would come before.
 */
export function encodePlain(jobs: readonly EnqueueJob[]): { jobs: Value[]; names: string } | null {
  const values: Value[] = [];
  const isAlone = jobs.length === 1;
  for (const job of jobs) {
    if (!isPlain(job) || (job.hasOwnId && !isAlone)) return null;
    values.push(job.id, job.body);
  }
  const names = isAlone ? jobs[0]!.name : fold(jobs.map(({ name }) => name));
  return { jobs: values, names: names as string };
}

/** Whether it has neither an order nor a time of its own. */
export function isPlain(job: EnqueueJob): boolean {
  return !job.priority && !isLater(job);
}

function isLater(job: EnqueueJob): boolean {
  return Boolean(job.delayMs) || job.dueAt !== undefined;
}

function say(jobs: readonly EnqueueJob[], fields: Value[], now: number): void {
  const added = { ids: [] as string[], names: [] as string[] };
  const delayed = { ids: [] as string[], names: [] as string[], delays: [] as number[] };
  for (const job of jobs) {
    const group = isLater(job) ? delayed : added;
    group.ids.push(job.id);
    group.names.push(job.name);
    if (group === delayed) delayed.delays.push(job.delayMs ?? Math.max(0, Math.ceil(job.dueAt! - now)));
  }
  writeGroup(fields, 'added', added.ids, [['name', added.names]]);
  writeGroup(fields, 'delayed', delayed.ids, [
    ['name', delayed.names],
    ['delay', delayed.delays],
  ]);
}
