import type { FireAnswer, FireSchedule, OccurrenceJob, ScheduleVerbs } from '../contract/schedule-verbs.js';
import type { QueueLimits } from '../contract/engine.js';
import { decodeBody } from '../job/job-record.js';
import { RULES } from '../job/rules.js';
import { sayAll } from './event-log.js';
import type { MemoryJob } from './memory-job.js';
import { keptWhenCancelled, type MemoryQueue } from './memory-queue.js';
import type { ScheduleEntry } from './schedule-book.js';
import type { Verbs } from './verbs.js';

/** The jobs that one call moved, for its events. */
interface Moves {
  readonly removed: MemoryJob[];
  readonly added: MemoryJob[];
  readonly delayed: MemoryJob[];
  /** Whether a worker must be woken. */
  wakes: boolean;
}

/** Schedules in memory. */
export function scheduleVerbs(verbs: Verbs): ScheduleVerbs {
  return {
    get: (queue, id) =>
      verbs.on('schedules', queue, ({ now, schedules }) => {
        const entry = schedules.get(id);
        return { now, schedule: entry ? { ...entry } : null };
      }),
    list: (queue, page) => verbs.on('schedules', queue, ({ schedules }) => schedules.page(page)),
    put: (queue, call) =>
      verbs.on('put-schedule', queue, ({ schedules, now }) => {
        verbs.store.known.add(queue);
        return schedules.put(call, now);
      }),
    remove: (queue, id) => verbs.on('remove-schedule', queue, ({ schedules }) => schedules.remove(id)),
    pause: (queue, id) => verbs.on('pause-schedule', queue, ({ schedules }) => schedules.pause(id)),
    resume: (queue, call) => verbs.on('resume-schedule', queue, ({ schedules }) => schedules.resume(call)),
    due: (queue, offset) =>
      verbs.on('due-schedules', queue, ({ schedules, now }) => schedules.due(now, offset)),
    fire: (queue, calls) => verbs.on('fire', queue, (q, limits) => fire(q, calls, limits)),
    scheduled: (queues) =>
      verbs.run('scheduled', () =>
        queues.filter((queue) => verbs.store.at(queue).schedules.firstAt !== null),
      ),
  };
}

/** A second caller finds another revision and does nothing, so each occurrence gives one job. */
function fire(queue: MemoryQueue, calls: readonly FireSchedule[], limits: QueueLimits): FireAnswer {
  const moves: Moves = { removed: [], added: [], delayed: [], wakes: false };
  const made = calls.map((call) => {
    const entry = queue.schedules.get(call.id);
    const isAsSeen = entry?.revision === call.revision && entry.nextAt === call.seenAt;
    return isAsSeen ? fireOne(queue, entry, call, moves, limits) : null;
  });
  if (moves.wakes) queue.ring();
  const { removed, added, delayed } = moves;
  const says = [...sayAll('removed', removed, { reason: 'replaced' }), ...sayAll('added', added)];
  for (const job of delayed)
    says.push(...sayAll('delayed', [job], { delayMs: Math.floor(job.score) - queue.now }));
  queue.say(says, limits);
  return { ...queue.schedules.outlook(queue.now), made };
}

/** Returns how many jobs it added. */
function fireOne(
  queue: MemoryQueue,
  entry: ScheduleEntry,
  call: FireSchedule,
  moves: Moves,
  limits: QueueLimits,
): number {
  const { limit, overlap, jobs, nextAt } = call;
  const { afterEndMs = null } = call;
  if (afterEndMs !== null && entry.lastJob !== null) {
    const isOpen = openJob(queue, entry.lastJob, '') !== undefined;
    if (!isOpen) entry.lastJob = null;
    queue.schedules.moveOn(entry, isOpen || nextAt === null ? nextAt : queue.now + afterEndMs);
    return 0;
  }
  const isSpent = () => limit !== null && entry.fired >= limit;
  let made = 0;
  for (const occurrence of jobs) {
    if (isSpent()) break;
    const last = overlap === 'allow' ? undefined : openJob(queue, entry.lastJob, occurrence.id);
    if (last && overlap === 'skip') continue;
    if (last) replace(queue, last, moves, limits);
    make(queue, occurrence, moves);
    made += 1;
    entry.fired += 1;
    entry.lastAt = occurrence.at;
    entry.lastJob = occurrence.id;
    entry.recent = [...entry.recent, occurrence.at].slice(-RULES.recent);
  }
  queue.schedules.moveOn(entry, isSpent() ? null : nextAt);
  return made;
}

/** The job of an earlier occurrence, if it waits, is delayed or runs. */
function openJob(queue: MemoryQueue, id: string | null, but: string): MemoryJob | undefined {
  if (id === null || id === but) return undefined;
  const job = queue.jobs.get(id);
  return job?.place === 'dead' || job?.place === 'completed' ? undefined : job;
}

/** Removes a waiting or delayed job. A running job is cancelled; the next heartbeat tells its worker. */
function replace(queue: MemoryQueue, job: MemoryJob, { removed }: Moves, limits: QueueLimits): void {
  if (job.place === 'active') queue.mark(job, 'replaced', keptWhenCancelled(job, limits));
  else {
    queue.forget(job);
    removed.push(job);
  }
}

function make(queue: MemoryQueue, { id, body, dueAt, priority = 0 }: OccurrenceJob, moves: Moves): void {
  const job = queue.create(id, body);
  // A schedule of this name has added the job before. One occurrence is one job.
  if (!job) return;
  if (decodeBody(body)?.options.group !== undefined) queue.limits.flag('g');
  if (dueAt > queue.now) {
    moves.wakes ||= dueAt < (queue.delayed.first?.score ?? Infinity);
    queue.delay(job, dueAt, priority);
    moves.delayed.push(job);
  } else {
    moves.wakes = true;
    queue.lineUp(job, priority);
    moves.added.push(job);
  }
}
