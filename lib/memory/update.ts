import type { UpdateAnswer, UpdateCall } from '../contract/admin-verbs.js';
import type { QueueLimits } from '../contract/engine.js';
import { dataTextOf, decodeBody, optionsLineOf, withLines } from '../job/job-record.js';
import { RULES } from '../job/rules.js';
import type { MemoryJob } from './memory-job.js';
import type { MemoryQueue } from './memory-queue.js';
import { isParked } from './unique.js';

/** Changes data, due time and priority of a job that waits or is delayed. */
export function update(queue: MemoryQueue, call: UpdateCall, limits: QueueLimits): UpdateAnswer {
  const { id, name, data, seenData, options } = call;
  const job = queue.find(id);
  if (!job) return { kind: 'not-found' };
  const { state } = job;
  if (state !== 'waiting' && state !== 'delayed') return { kind: state };
  const line = optionsLineOf(job.body);
  if (line === null) return { kind: 'unreadable' };
  if (name !== undefined && job.name !== name) return { kind: 'other-name' };
  if (options && options.seen !== line) return { kind: 'changed' };
  if (seenData && dataTextOf(job.body) !== seenData) return { kind: 'changed' };
  if (dueOf(queue, call) !== undefined && isParked(job)) return { kind: 'parked' };

  if (state === 'delayed') changeDelayed(queue, job, call);
  else changeWaiting(queue, job, call);
  stopCollecting(queue, job);
  job.body = withLines(job.body, options?.changed, data);
  queue.say([{ type: 'updated', id, name: job.name }], limits);
  return job.place === 'delayed'
    ? { kind: 'updated', state: 'delayed', dueAt: Math.floor(job.score) }
    : { kind: 'updated', state: 'waiting', dueAt: null };
}

/** A changed job with `aggregate` takes no more items: for that, its row needs a time. */
export function stopCollecting({ keys }: MemoryQueue, { id, body }: MemoryJob): void {
  const { items, digest } = decodeBody(body)!.options;
  const row = items === undefined || digest === undefined ? undefined : keys.get(digest);
  if (row?.holder === id) keys.set(digest!, { ...row, till: 0 });
}

/** The new due time. Undefined: no change. */
function dueOf({ now }: MemoryQueue, { delayMs, dueAt }: UpdateCall): number | undefined {
  return dueAt ?? (delayMs === undefined ? undefined : now + delayMs);
}

function changeDelayed(queue: MemoryQueue, job: MemoryJob, call: UpdateCall): void {
  const { priority = job.priority } = call;
  const due = dueOf(queue, call);
  job.priority = priority;
  if (due === undefined) return;
  if (due > queue.now) return delay(queue, job, due, priority);
  queue.promote(job);
  queue.ring();
}

function changeWaiting(queue: MemoryQueue, job: MemoryJob, call: UpdateCall): void {
  const old =
    job.place === 'grouped'
      ? (decodeBody(job.body)?.options.priority ?? 0)
      : job.place === 'prioritized'
        ? Math.floor(job.score / RULES.ranks)
        : 0;
  const { priority = old } = call;
  const due = dueOf(queue, call);
  if (due !== undefined && due > queue.now) return delay(queue, job, due, priority);
  // A suspect stays in `suspects`, where jobs run one at a time.
  if (priority === old || job.place === 'suspects') return;
  queue.leave(job);
  queue.lineUp(job, priority);
  queue.ring();
}

function delay(queue: MemoryQueue, job: MemoryJob, due: number, priority: number): void {
  const earliest = queue.delayed.first?.score ?? Infinity;
  queue.leave(job);
  queue.delay(job, due, priority);
  if (due < earliest) queue.ringSooner();
}
