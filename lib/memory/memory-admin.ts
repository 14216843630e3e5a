import {
  indexFrom,
  MOST_EXAMINED,
  withoutData,
  type AdminVerbs,
  type CancelAnswer,
  type DataMatch,
  type JobsAnswer,
  type JobsCall,
  type JobsPlace,
  type PriorityRange,
  type LastFull,
  type RemoveAnswer,
  type StoredJob,
  type PromoteAnswer,
  type UpdateAnswer,
  type UpdateCall,
  QueueCounts,
} from '../contract/admin-verbs.js';
import { byBytes } from './lines.js';
import { addedAt, deadBetween, isAsked } from './memory-upkeep.js';
import type { AuditReport, RepairReport } from '../job/audit-report.js';
import { decodeBody, expiresAt } from '../job/job-record.js';
import type { CountedBy, MinutesCall, StoredMinuteRow } from '../contract/history.js';
import type { QueueStats } from '../contract/stats.js';
import { audit, repair } from './auditor.js';
import type { EndRecord, MemoryJob } from './memory-job.js';
import { keptWhenCancelled, type Ended, type MemoryQueue } from './memory-queue.js';
import type { Saying } from './event-log.js';
import { freeKeysOf, isParked } from './unique.js';
import { update } from './update.js';
import type { Verbs } from './verbs.js';
import { RULES } from '../job/rules.js';

/** The management verbs of a queue. */
export class MemoryAdmin implements AdminVerbs {
  constructor(private readonly verbs: Verbs) {}

  get(queue: string, id: string, isBrief = false): Promise<StoredJob | null> {
    return this.verbs.on('get', queue, (q) => {
      const job = q.find(id);
      return job ? storedJob(job, isBrief) : null;
    });
  }

  jobs(queue: string, call: JobsCall): Promise<JobsAnswer> {
    const { after, offset = 0, limit, group, contains = '', where, priority } = call;
    const { backward = false, brief = false } = call;
    return this.verbs.on('jobs', queue, (q) => {
      const lines = linesOf(q, call);
      const jobs: StoredJob[] = [];
      let examined = 0;
      const names = lines.map(([line]) => line);
      const from = after ? indexFrom(names, after.line, backward) : 0;
      let skip = offset;
      for (const [line, all] of lines.slice(from)) {
        const start = line === after?.line ? startBehind(all, after, backward) : Math.min(skip, all.length);
        skip = Math.max(0, skip - start);
        for (let at = start; at < all.length; at++) {
          if (jobs.length >= limit || examined >= MOST_EXAMINED)
            return { jobs, next: placeBefore(line, all, at, start), examined };
          examined += 1;
          const job = all[at]!;
          if (
            isAsked(job, call) &&
            (group === undefined || decodeBody(`${withoutData(job.body)}null`)?.options.group === group) &&
            isOfAge(job, call, q.now) &&
            hasPriority(job, priority) &&
            hasText(job, contains) &&
            hasValues(job, where)
          )
            jobs.push(storedJob(job, brief));
        }
      }
      return { jobs, next: null, examined };
    });
  }

  counts(queue: string): Promise<QueueCounts> {
    return this.verbs.on('counts', queue, (q) => {
      let active = 0;
      for (const { held } of q.workers.values()) active += held.size;
      const kept = { completed: 0, cancelled: 0 };
      for (const job of q.completed) if (job.keptUntil > q.now) kept[job.state as 'completed'] += 1;
      return {
        waiting: q.wait.size + q.suspects.size + q.prioritized.size + q.limits.grouped.size,
        delayed: q.delayed.size,
        active,
        ...kept,
        dead: q.dead.size,
        paused: q.pausedAt !== null,
        isLimited: q.limits.isOn,
      };
    });
  }

  oldestWaitingMs(queue: string): Promise<number | null> {
    return this.verbs.on('oldestWaitingMs', queue, (q) => {
      let oldestMs: number | null = null;
      for (const { body } of heads(q)) {
        const read = decodeBody(body);
        if (read) oldestMs = Math.max(oldestMs ?? 0, q.now - expiresAt(read, 0)!);
      }
      return oldestMs;
    });
  }

  lastFull(queue: string): Promise<LastFull | null> {
    return this.verbs.on('lastFull', queue, (q) => q.lastFull);
  }

  async remove(queue: string, id: string): Promise<RemoveAnswer> {
    return (await this.removeAll(queue, [id]))[0]!;
  }

  removeAll(queue: string, ids: readonly string[]): Promise<RemoveAnswer[]> {
    return this.verbs.on('removeAll', queue, (q, limits) => {
      const removed: Saying[] = [];
      const jobs: MemoryJob[] = [];
      const removeOne = (id: string): RemoveAnswer => {
        const job = q.find(id);
        if (!job) return 'not-found';
        if (job.place === 'active') return 'active';
        jobs.push(job);
        q.forget(job);
        removed.push({ type: 'removed', id, name: job.name, reason: 'asked' });
        return 'removed';
      };
      const answers = q.freeing(() => ids.map(removeOne));
      freeKeysOf(q, jobs);
      q.say(removed, limits);
      return answers;
    });
  }

  async cancel(queue: string, id: string, reason: string): Promise<CancelAnswer> {
    return (await this.cancelAll(queue, [id], reason))[0]!;
  }

  cancelAll(queue: string, ids: readonly string[], reason: string): Promise<CancelAnswer[]> {
    return this.verbs.on('cancelAll', queue, (q, limits) => {
      const ended = new Map<string, Ended>();
      const answers = ids.map((id): CancelAnswer => {
        const job = ended.has(id) ? undefined : q.find(id);
        if (!job || job.place === 'dead' || job.place === 'completed') return 'not-found';
        const keepMs = keptWhenCancelled(job, limits);
        if (job.place === 'active') {
          q.mark(job, reason, keepMs);
          return 'signalled';
        }
        ended.set(id, { job, reason, keepMs });
        return 'cancelled';
      });
      q.say(
        q.freeing(() => q.endCancelled([...ended.values()], 0)),
        limits,
      );
      freeKeysOf(
        q,
        [...ended.values()].map(({ job }) => job),
      );
      return answers;
    });
  }

  cancelled(queue: string, id: string): Promise<{ reason: string; agoMs: number } | null> {
    return this.verbs.on('cancelled', queue, (q) => {
      q.dropOldCancelled();
      const record = q.cancelled.get(id);
      return record ? { reason: record.reason, agoMs: q.now - record.at } : null;
    });
  }

  stats(queue: string, days: number): Promise<QueueStats> {
    return this.verbs.on('stats', queue, (q) => q.counters.read(q.now, days));
  }

  countMinutes(queue: string, call: MinutesCall): Promise<void> {
    return this.verbs.on('countMinutes', queue, (q) => q.minutes[call.by].count(call, q.now));
  }

  minutes(queue: string, hours: readonly number[], by: CountedBy): Promise<readonly StoredMinuteRow[]> {
    return this.verbs.on('minutes', queue, (q) => q.minutes[by].read(hours, q.now));
  }

  update(queue: string, call: UpdateCall): Promise<UpdateAnswer> {
    return this.verbs.on('update', queue, (q, limits) => update(q, call, limits));
  }

  promoteNow(queue: string, id: string): Promise<PromoteAnswer> {
    return this.verbs.on('promoteNow', queue, (q) => {
      const job = q.jobs.get(id);
      if (!job) return 'not-found';
      if (job.place !== 'delayed') return 'not-delayed';
      if (isParked(job)) return 'parked';
      q.promote(job);
      q.ring();
      return 'promoted';
    });
  }

  async memoryBytes(): Promise<number | null> {
    return null;
  }

  async serverInfo(): Promise<string | null> {
    return null;
  }

  async tryWrite(): Promise<void> {}

  publish(queue: string, name: string, payload: string): Promise<void> {
    return this.verbs.on('publish', queue, (q, limits) =>
      q.say([{ type: 'published', id: '', name, progress: payload }], limits),
    );
  }

  pause(queue: string): Promise<boolean> {
    return this.verbs.on('pause', queue, (q, limits) => {
      if (q.pausedAt !== null) return false;
      q.pausedAt = q.now;
      q.say([{ type: 'paused', id: '' }], limits);
      return true;
    });
  }

  resume(queue: string): Promise<boolean> {
    return this.verbs.on('resume', queue, (q, limits) => {
      if (q.pausedAt === null) return false;
      q.pausedAt = null;
      q.ring();
      q.say([{ type: 'resumed', id: '' }], limits);
      return true;
    });
  }

  obliterate(queue: string, force: boolean): Promise<'obliterated' | 'active'> {
    return this.verbs.on('obliterate', queue, (q) => {
      if (!force) for (const { held } of q.workers.values()) if (held.size > 0) return 'active';
      q.obliterate();
      this.verbs.store.known.delete(queue);
      return 'obliterated';
    });
  }

  audit(queue: string): Promise<AuditReport> {
    return this.verbs.on('audit', queue, (q, { leaseMs }) => audit(q, leaseMs));
  }

  repair(queue: string, maxStalls: number): Promise<RepairReport> {
    return this.verbs.on('repair', queue, (q, limits) => repair(q, { maxStalls, limits }));
  }
}

function storedJob(job: MemoryJob, brief = false): StoredJob {
  const { id, body, failed, stalls, worker, progress, logs, failure } = job;
  const { state } = job;
  const isLarge = brief && Buffer.byteLength(job.end?.result ?? '') > RULES.briefResult;
  const end: Partial<EndRecord> | null = isLarge ? { at: job.end!.at } : job.end;
  return {
    id,
    body: brief ? withoutData(body) : body,
    state,
    worker,
    failed,
    stalls: end?.stalls ?? stalls,
    failure: job.failureRecord,
    failedAt: failure?.at ?? null,
    failures: brief ? [] : job.failures,
    dueAt: state === 'delayed' ? Math.floor(job.score) : null,
    endedAt: state === 'dead' ? job.score : (end?.at ?? null),
    progress: brief ? null : progress,
    logs: brief ? [] : [...logs],
    result: end?.result ?? null,
    resultFault: end?.resultFault ?? null,
    cancelReason: end?.cancelled ?? (state === 'active' ? job.cancel : null),
    attempt: end?.attempt ?? null,
    durationUs: end?.durationUs ?? null,
  };
}

type JobLine = readonly [line: string, jobs: readonly MemoryJob[]];

/** The jobs of a state, line by line, in the requested order. */
function linesOf(q: MemoryQueue, call: JobsCall): readonly JobLine[] {
  const inOrder = linesIn(q, call);
  const lines = call.backward
    ? inOrder.toReversed().map(([line, jobs]): JobLine => [line, jobs.toReversed()])
    : inOrder;
  if (call.group === undefined) return lines;
  return lines.toSorted(([a], [b]) => Number(b === 'grouped') - Number(a === 'grouped'));
}

function linesIn(q: MemoryQueue, call: JobsCall): readonly JobLine[] {
  const isIn = (line: MemoryJob['line']) => call.group === undefined || line?.name === `g:${call.group}`;
  switch (call.state) {
    case 'waiting':
      return [
        ['suspects', [...q.suspects]],
        ['wait', [...q.wait]],
        ['prioritized', q.prioritized.sorted()],
        ['grouped', q.limits.grouped.sorted().filter(({ line }) => isIn(line))],
      ];
    case 'delayed':
      return [['delayed', q.delayed.sorted()]];
    case 'active':
      return Array.from(q.leased(), ({ name, held }): JobLine => {
        return [name, [...held.values()].toSorted((a, b) => byBytes(a.id, b.id))];
      })
        .filter(([name]) => call.workers?.includes(name) !== false)
        .toSorted(([a], [b]) => (a < b ? -1 : 1));
    case 'completed':
    case 'cancelled':
      return [
        [call.state, q.completed.sorted().filter((job) => job.state === call.state && job.keptUntil > q.now)],
      ];
    case 'dead':
      return [['dead', deadBetween(q, call)]];
  }
}

/** The index in a line at which the next page starts. */
function startBehind(jobs: readonly MemoryJob[], { line, at, id }: JobsPlace, backward: boolean): number {
  if (id === '') return 0;
  if (line === 'wait' || line === 'suspects') {
    const [listed, coming] = id.split('\n\n').map((ids) => ids.split('\n'));
    const behind = jobs.findLastIndex((job) => listed!.includes(job.id)) + 1;
    const ahead = jobs.findIndex((job) => coming?.includes(job.id));
    if (behind > 0 && ahead >= 0) return backward ? Math.max(behind, ahead) : Math.min(behind, ahead);
    if (behind > 0 || ahead >= 0) return Math.max(behind, ahead);
    return backward ? jobs.length : 0;
  }
  const place = at === '' ? null : Number(at);
  const first = jobs.findIndex((job) => {
    const order = (place === null ? 0 : job.score - place) || byBytes(job.id, id);
    return backward ? order < 0 : order > 0;
  });
  return first < 0 ? jobs.length : first;
}

/** The place of the job before this one; for the first job, the start of the line. */
function placeBefore(line: string, jobs: readonly MemoryJob[], at: number, start: number): JobsPlace {
  const last = jobs[at - 1];
  if (!last || at === start) return { line, at: '', id: '' };
  switch (last.place) {
    case 'wait':
    case 'suspects': {
      const idsOf = (from: number, end: number) =>
        jobs
          .slice(from, end)
          .map(({ id }) => id)
          .join('\n');
      const id = `${idsOf(Math.max(start, at - 3), at)}\n\n${idsOf(at, at + 3)}`;
      return { line, at: String(at - 1), id };
    }
    case 'active':
      return { line, at: '', id: last.id };
    default:
      return { line, at: String(last.score), id: last.id };
  }
}

/** Whether a job ended, or was added, within these ages. */
function isOfAge(
  job: MemoryJob,
  { state, olderThanMs = 0, newerThanMs = -1 }: JobsCall,
  now: number,
): boolean {
  if (state === 'dead' || (olderThanMs === 0 && newerThanMs < 0)) return true;
  const hasEnded = state === 'completed' || state === 'cancelled';
  const since = hasEnded ? (job.end?.at ?? null) : addedAt(job);
  return since !== null && since <= now - olderThanMs && (newerThanMs < 0 || since >= now - newerThanMs);
}

function hasText({ id, name, failure }: MemoryJob, text: string): boolean {
  return text === '' || lower([id, name, failure?.json ?? ''].join('\n')).includes(lower(text));
}

/** As in Lua: other letters stay as they are. */
function lower(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function hasPriority({ body }: MemoryJob, asked: PriorityRange | undefined): boolean {
  if (!asked) return true;
  const priority = decodeBody(`${withoutData(body)}null`)?.options.priority ?? 0;
  return priority >= asked.from && priority <= asked.to;
}

function hasValues({ body }: MemoryJob, where: DataMatch | undefined): boolean {
  if (!where) return true;
  const read = decodeBody(body);
  return Object.entries(where).every(([path, wanted]) => {
    let value: unknown = read?.data;
    for (const step of path.split('.')) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      value = Object.hasOwn(value, step) ? (value as Record<string, unknown>)[step] : undefined;
    }
    return value === wanted;
  });
}

/**
 * The jobs that may have waited longest: the first of each line that has not run before. A job that has run before was added long
 * before it came to its line.
 */
function* heads({ wait, suspects, prioritized, limits }: MemoryQueue): Generator<MemoryJob> {
  const ranked = prioritized.sorted();
  // Jobs of the lowest priority wait longest.
  const lowest = Math.floor((ranked.at(-1)?.score ?? 0) / RULES.ranks) * RULES.ranks;
  const starving = ranked.slice(ranked.findIndex(({ score }) => score >= lowest));
  const heads = limits.heads(RULES.oldestMax).map((job) => [job]);
  for (const line of [wait, suspects, limits.grouped.sorted(), ...heads, ranked, starving]) {
    let seen = 0;
    for (const job of line) {
      const isNew = job.failed === 0 && !job.started;
      if (isNew) yield job;
      if (isNew || ++seen === RULES.oldestMax) break;
    }
  }
}
