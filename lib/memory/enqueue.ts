import {
  isLater,
  type Duplicate,
  type EnqueueAnswer,
  type EnqueueCall,
  type EnqueueJob,
  type QueueLimits,
} from '../contract/engine.js';
import type { LastFull } from '../contract/admin-verbs.js';
import { decodeBody } from '../job/job-record.js';
import { RULES } from '../job/rules.js';
import { sayAll, type Saying } from './event-log.js';
import { Collecting } from './aggregate.js';
import { isKeptOut, meetHolder, takeKey } from './unique.js';
import type { MemoryJob } from './memory-job.js';
import type { KeyRow, LaneRecord, MemoryQueue } from './memory-queue.js';

/** Adds jobs. If a job that holds its id exists, it stays as it is and the answer lists it. A job that has ended is replaced. */
export function enqueue(queue: MemoryQueue, call: EnqueueCall, limits: QueueLimits): EnqueueAnswer {
  const { lane, seq, rememberMs, replication } = call;
  const before = laneAt(queue, lane);
  if (before && before.seq > seq) return { kind: 'stale' };
  // There are no replicas to wait for.
  const replicas = replication ? { replicas: replication.replicas } : {};
  if (before?.seq === seq) {
    const { duplicates, removed } = before;
    return { kind: 'stored', duplicates, ...(removed !== undefined && { removed }), ...replicas };
  }

  const now = call.jobs.filter((job) => !isLater(job));
  const grouped = now.filter((job) => job.group !== undefined);
  const needNoRoom = duplicatesIn(queue, grouped);
  const fresh = grouped.filter(({ id }) => !needNoRoom.has(id));
  const full = queue.limits.fullGroup(fresh.map(({ group }) => group!));
  if (full) {
    noteFull(queue, { limit: full.maxSize, onFull: 'reject', group: full.group });
    return { kind: 'group-full', ...full, needNoRoom };
  }
  const fullQueue = queueFull(queue, call, now);
  if (fullQueue) return fullQueue;
  const stored = queue.freeing(() => addJobs(queue, call, limits));
  queue.lanes.set(lane, { seq, ...stored, until: queue.now + Math.max(rememberMs, 1) });
  return { kind: 'stored', ...stored, ...replicas };
}

/** The ids of the jobs that need no room. */
function duplicatesIn(queue: MemoryQueue, jobs: readonly EnqueueJob[]): ReadonlySet<string> {
  return new Set(jobs.filter((job) => isDuplicate(queue, job)).map(({ id }) => id));
}

/** Whether a job is not put into the line, because another job has its id or its key. */
function isDuplicate(queue: MemoryQueue, job: EnqueueJob): boolean {
  const there = queue.find(job.id);
  if (there && holds(queue, there, job)) return true;
  return job.unique !== undefined && isKeptOut(queue, job.id, job.unique);
}

function queueFull(
  queue: MemoryQueue,
  { maxWaiting }: EnqueueCall,
  jobs: readonly EnqueueJob[],
): EnqueueAnswer | null {
  if (!maxWaiting || maxWaiting.onFull === 'dropOldest') return null;
  const needNoRoom = duplicatesIn(queue, jobs);
  const fresh = jobs.filter(({ id }) => !needNoRoom.has(id)).length;
  if (fresh === 0 || queue.waiting + fresh <= maxWaiting.limit) return null;
  noteFull(queue, { ...maxWaiting, group: null });
  return { kind: 'queue-full', waiting: queue.waiting, needNoRoom };
}

/** Written once a second at most, as on Redis. */
function noteFull(queue: MemoryQueue, { limit, onFull, group }: Omit<LastFull, 'at'>): void {
  const { now, lastFull } = queue;
  if (!lastFull || Math.abs(now - lastFull.at) >= 1_000) queue.lastFull = { at: now, limit, onFull, group };
}

type Stored = Pick<LaneRecord, 'duplicates' | 'removed'>;

function addJobs(queue: MemoryQueue, call: EnqueueCall, limits: QueueLimits): Stored {
  const { jobs } = call;
  const [now, later] = [jobs.filter((job) => !isLater(job)), jobs.filter(isLater)];
  const earliest = queue.delayed.first?.score ?? Infinity;
  const duplicates = new Map<string, Duplicate>();
  const [updated, replaced]: [MemoryJob[], MemoryJob[]] = [[], []];
  const collecting = new Collecting(queue);
  let [sooner, isWork] = [false, false];
  const change = (job: MemoryJob) => {
    updated.push(job);
    sooner ||= job.place === 'delayed' && job.score < earliest;
  };
  /** Whether the key of a job is free. If it is not, the job is handled here. */
  const isKeyFree = (job: EnqueueJob) => {
    // If the job itself exists, because a call was repeated much later, it is handled as a duplicate by its id.
    if (!job.unique || (queue.jobs.has(job.id) && job.unique.on !== 'again')) return true;
    const { unique } = job;
    const met = unique.on === 'aggregate' ? collecting.take(job, unique) : meetHolder(queue, job, unique);
    isWork ||= met.isWork === true;
    if (met.duplicate) duplicates.set(job.id, met.duplicate);
    if (met.updated) change(met.updated);
    return !met.duplicate;
  };
  const grouped: { job: MemoryJob; name: string; priority: number }[] = [];
  const rows: RowsBefore = new Map();
  const add = (job: EnqueueJob) => {
    const there = queue.find(job.id);
    const holder = there && holds(queue, there, job) ? there : null;
    if (there && !holder) {
      queue.forget(there);
      replaced.push(there);
    }
    const created = holder ? null : queue.create(job.id, job.body);
    const { priority = 0 } = job;
    if (created && job.unique) rows.set(job.id, takeKey(queue, job.id, job.unique));
    if (!created) duplicates.set(job.id, { id: job.id, state: holder!.state });
    else if (!isLater(job) && job.group !== undefined)
      grouped.push({ job: created, name: `g:${job.group}`, priority });
    else if (isLifo(job)) putFirst(queue, created);
    else if (!isLater(job)) queue.lineUp(created, priority);
    else {
      const dueAt = job.dueAt ?? queue.now + (job.delayMs ?? 0);
      queue.delay(created, dueAt, priority);
      sooner ||= created.score < earliest;
    }
  };
  // The jobs in the order in which Redis stores them: plain jobs first, jobs of groups last.
  for (const kind of [0, 1, 2, 3]) {
    now
      .filter((job) => kindOf(job) === kind)
      .filter(isKeyFree)
      .forEach(add);
    if (kind === 2 && grouped.length > 0) queue.toLines(grouped);
  }
  later.filter(isKeyFree).forEach(add);
  isWork = collecting.store(change) || isWork;
  const isAdded = ({ id }: EnqueueJob) => !duplicates.has(id) || duplicates.get(id)!.parked === true;
  const isAny = jobs.some(isAdded);
  if (isAny && jobs.some(({ group }) => group !== undefined)) queue.limits.flag('g');
  if (sooner) queue.ringSooner();
  else if (isWork || now.some(({ id }) => !duplicates.has(id) && queue.jobs.get(id)?.state === 'waiting'))
    queue.ring();

  const events = [...now, ...later].map((job) => (isAdded(job) ? added(queue, job) : null));
  const over = makeRoom(queue, call, duplicates, new Set(replaced.map(({ id }) => id)), rows);
  if (isAny) queue.say([...sayAll('removed', replaced, { reason: 'replaced' }), ...events], limits);
  queue.say([...sayAll('updated', updated), ...sayAll('removed', over, { reason: 'dropped' })], limits);
  const removed = over.filter(({ id }) => !duplicates.get(id)?.dropped).length;
  return { duplicates: [...duplicates.values()], ...(removed > 0 && { removed }) };
}

/** The rows of the keys before new jobs took them, by the ids of these jobs. */
type RowsBefore = Map<string, readonly [digest: string, row: KeyRow]>;

/**
 * In a queue with lines, the next claim moves the job to the front of its line. With aging, only the time of the wait counts, so the job goes
 * to the tail like all others.
 */
function putFirst({ wait, limits }: MemoryQueue, job: MemoryJob): void {
  if (limits.hasAging) wait.push(job);
  else wait.unshift(job);
  job.isReturned = limits.hasFronts;
}

/** Whether an existing job keeps its id. */
function holds({ now }: MemoryQueue, { state, body, end }: MemoryJob, job: EnqueueJob): boolean {
  if (state !== 'completed' && state !== 'dead' && state !== 'cancelled') return true;
  const isAwaited = state === 'completed' && decodeBody(body)?.options.awaited === true;
  return job.idHeldBy?.includes(state) === true || (isAwaited && now - end!.at < RULES.awaitedMs);
}

/**
 * Removes jobs if too many wait. The answer lists the new jobs among them. A job that has replaced an ended one stays: the ended job would
 * be lost with it.
 */
function makeRoom(
  queue: MemoryQueue,
  { maxWaiting, jobs }: EnqueueCall,
  duplicates: Map<string, Duplicate>,
  replaced: ReadonlySet<string>,
  rows: RowsBefore,
): readonly MemoryJob[] {
  if (maxWaiting?.onFull !== 'dropOldest') return [];
  // A job that has collected its last item in this call is none: it was delayed.
  const isNew = ({ id }: MemoryJob) =>
    !duplicates.has(id) && jobs.some((job) => job.id === id && !isLater(job));
  const stays = ({ id, body }: MemoryJob) =>
    replaced.has(id) || decodeBody(body)?.options.group !== undefined;
  const grouped = jobs.flatMap(({ id, group }) => {
    const job = group === undefined || replaced.has(id) ? undefined : queue.jobs.get(id);
    return job?.state === 'waiting' && isNew(job) ? [job] : [];
  });
  const over = oldest(queue, queue.waiting - maxWaiting.limit, isNew, stays, grouped);
  if (over.length > 0) noteFull(queue, { ...maxWaiting, group: null });
  for (const { id } of over.filter(isNew)) {
    duplicates.set(id, { id, dropped: true });
    if (rows.has(id)) queue.keys.set(...rows.get(id)!);
  }
  return over;
}

/**
 * Removes the jobs that have waited longest. Of jobs with a priority, those that would run last; new jobs without a priority come after
 * them, and new jobs of groups last.
 */
function oldest(
  queue: MemoryQueue,
  count: number,
  isNew: (job: MemoryJob) => boolean,
  stays: (job: MemoryJob) => boolean,
  grouped: readonly MemoryJob[],
): readonly MemoryJob[] {
  if (count <= 0) return [];
  const waiting = [...queue.wait].filter((job) => !stays(job));
  const ranked = queue.prioritized.sorted().toReversed();
  const jobs = [
    ...waiting.filter((job) => !isNew(job)),
    ...ranked.filter((job) => !stays(job)),
    ...waiting.filter(isNew),
    ...grouped,
  ].slice(0, Math.min(count, 1_000));
  for (const job of jobs) queue.forget(job);
  return jobs;
}

function laneAt(queue: MemoryQueue, lane: string) {
  const { lanes, now } = queue;
  if (!lanes.has(lane)) for (const [name, { until }] of lanes) if (until <= now) lanes.delete(name);
  const record = lanes.get(lane);
  return record && record.until > now ? record : undefined;
}

/** Whether the job goes to the head. A time, a group or a priority takes precedence over `lifo`. */
function isLifo(job: EnqueueJob): boolean {
  return job.lifo === true && job.group === undefined && !job.priority && !isLater(job);
}

function kindOf(job: EnqueueJob): number {
  if (job.group !== undefined) return 2;
  if (job.priority) return 3;
  return isLifo(job) ? 1 : 0;
}

function added({ now }: MemoryQueue, job: EnqueueJob): Saying {
  const { id, name, delayMs, dueAt } = job;
  if (!isLater(job)) return { type: 'added', id, name };
  return { type: 'delayed', id, name, delayMs: delayMs ?? Math.max(0, Math.ceil(dueAt! - now)) };
}
