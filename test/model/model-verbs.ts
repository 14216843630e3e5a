import type {
  AdoptAnswer,
  BeatAnswer,
  EnqueueAnswer,
  EnqueueCall,
  NoteCall,
  RecoverAnswer,
  RecoverCall,
  ReleaseCall,
} from '#lib/contract/engine.js';
import type { CancelAnswer } from '#lib/contract/admin-verbs.js';
import type { JobCounts, JobState } from '#lib/job/job-state.js';
import { sorted, type QueueModel, type Saying } from './queue-model.js';

export const CORRUPT = JSON.stringify({
  name: 'CorruptJob',
  message: 'the body of this job is missing',
  attempt: 0,
  reason: 'corrupt',
});
const STALLED = JSON.stringify({
  name: 'StalledJob',
  message: 'its worker died or went silent too many times',
  attempt: 0,
  reason: 'stalled',
});
const LOG_LINES = 100;

export function enqueue(model: QueueModel, call: EnqueueCall): EnqueueAnswer {
  const before = model.lanes.get(call.lane);
  if (before && before.seq > call.seq) return { kind: 'stale' };
  if (before?.seq === call.seq) return { kind: 'stored', duplicates: before.duplicates };
  const earliest = model.firstOf(model.delayed)?.[1] ?? Infinity;
  const isLater = (job: (typeof call.jobs)[number]) => Boolean(job.delayMs) || job.dueAt !== undefined;
  const plain = call.jobs.filter((job) => !isLater(job) && !job.priority);
  const ranked = call.jobs.filter((job) => !isLater(job) && job.priority);
  const later = call.jobs.filter(isLater);
  const duplicates: string[] = [];
  const fresh = [...plain, ...ranked, ...later].filter(({ id, body }) => {
    const keptUntil = model.completed.get(id);
    if (model.jobs.has(id)) {
      if (keptUntil === undefined || keptUntil > model.now) {
        duplicates.push(id);
        return false;
      }
      model.retire(id);
    }
    model.jobs.set(id, body);
    return true;
  });
  for (const job of fresh) {
    const due = job.dueAt ?? model.now + (job.delayMs ?? 0);
    if (!isLater(job)) {
      model.ring();
      if (job.priority) model.prioritized.set(job.id, model.nextRank(job.priority));
      else model.wait.push(job.id);
    } else {
      model.delay(job.id, due);
      if (job.priority) model.priorities.set(job.id, job.priority);
      if (model.delayed.get(job.id)! < earliest) model.ringSooner();
    }
  }
  const { lane, seq, rememberMs } = call;
  model.lanes.set(lane, { seq, duplicates, rememberMs, until: model.now + rememberMs });
  const saying = (type: 'added' | 'delayed') => (job: (typeof call.jobs)[number]) =>
    ({ type, id: job.id, name: job.name, skipped: duplicates.includes(job.id) }) satisfies Saying;
  const now = call.jobs.filter((job) => !isLater(job));
  if (fresh.length > 0) model.say([...now.map(saying('added')), ...later.map(saying('delayed'))]);
  return { kind: 'stored', duplicates };
}

export function beat(model: QueueModel, worker: string, leaseMs: number): BeatAnswer {
  const record = model.records.get(worker);
  if (record?.seq === undefined) return { kind: 'unknown-worker' };
  const held = model.held(worker);
  if (held.size > 0) model.leases.set(worker, model.now + leaseMs);
  record.until = model.now + model.limits.recordMs;
  const cancels = new Map([...model.toCancel].filter(([id]) => held.has(id)));
  const exchanges = record.seq + (record.beside?.seq ?? 0);
  const { pause: pauseMark } = record;
  return { kind: 'alive', held: held.size, exchanges, cancels, ...(pauseMark && { pauseMark }) };
}

export function overdue(model: QueueModel, withinMs: number): { worker: string; endsInMs: number }[] {
  const all = sorted(model.leases);
  const near = all.filter(([, end]) => end <= model.now + withinMs);
  const far = all.filter(([, end]) => end > model.now + model.limits.leaseMs).toReversed();
  return [...near, ...far].map(([worker, end]) => ({ worker, endsInMs: end - model.now }));
}

export function recover(model: QueueModel, call: RecoverCall): RecoverAnswer {
  const { worker, beatMs } = call;
  const { now } = model;
  const lease = model.leases.get(worker);
  if (lease === undefined) return { kind: 'alive' };
  const longest = model.records.get(worker)?.leaseMs ?? call.leaseMs;
  if (lease > now + longest) {
    model.leases.set(worker, now + longest);
    return { kind: 'alive' };
  }
  if (lease > now + beatMs) return { kind: 'alive' };
  const record = model.records.get(worker);
  const [mark, since] = record?.doubt?.split(' ').map(Number) ?? [];
  if (mark !== lease || since! > now || now - since! > 2 * longest) {
    const until = now + model.limits.recordMs;
    model.records.set(worker, { ...record, doubt: `${lease} ${now}`, until });
    return { kind: 'doubted', againInMs: Math.max(beatMs, lease - now) };
  }
  const waitMs = Math.max(lease - now, since! + beatMs - now);
  if (waitMs > 0) return { kind: 'doubted', againInMs: waitMs };
  return takeBack(model, call);
}

function takeBack(model: QueueModel, { worker, maxStalls }: RecoverCall): RecoverAnswer {
  const taken = [...model.held(worker)].toSorted();
  model.active.delete(worker);
  model.leases.delete(worker);
  model.records.delete(worker);
  const { others: ids, ended: cancelled, says } = model.withoutCancelled(taken);
  says.push(...ids.map((id): Saying => ({ type: 'stalled', id, name: model.nameOf(id) })));
  for (const id of ids) model.stalls.set(id, (model.stalls.get(id) ?? 0) + 1);
  const stallsOf = (id: string) => model.stalls.get(id)!;
  const dead = ids.filter((id) => stallsOf(id) > maxStalls);
  const suspects = ids.filter((id) => stallsOf(id) >= 2 && !dead.includes(id));
  const waiting = ids.filter((id) => stallsOf(id) < 2 && !dead.includes(id));
  model.wait.unshift(...waiting);
  model.suspects.push(...suspects);
  for (const id of dead) {
    model.bury(id, STALLED);
    says.push({ type: 'dead', id, name: model.nameOf(id), reason: 'stalled' });
  }
  for (const id of dead) model.tallyName('dead', model.nameOf(id));
  if (dead.length > 0) says.push(...model.trimDead());
  if (waiting.length + suspects.length > 0) model.ring();
  model.say(says);
  return { kind: 'recovered', waiting, suspects, dead, cancelled, more: false };
}

export function adopt(model: QueueModel, worker: string, known: readonly string[]): AdoptAnswer {
  const held = model.held(worker);
  return {
    lost: known.filter((id) => !held.has(id)),
    unknown: [...held].filter((id) => !known.includes(id)).toSorted(),
    buried: [],
  };
}

export function release(model: QueueModel, { worker, ids, leave }: ReleaseCall): { lost: readonly string[] } {
  const held = model.held(worker);
  const lost: string[] = [];
  const given = ids.filter((id) => {
    if (held.delete(id)) return true;
    lost.push(id);
    return false;
  });
  const { others: released, says } = model.withoutCancelled(given);
  if (released.length > 0) {
    model.toHead(released);
    model.ring();
    says.push(...released.map((id): Saying => ({ type: 'released', id, name: model.nameOf(id) })));
  }
  model.say(says);
  if (held.size === 0) {
    model.leases.delete(worker);
    if (leave) model.records.delete(worker);
  }
  return { lost };
}

export function promote(model: QueueModel, limit: number): { promoted: number; dueInMs: number | null } {
  const promoted = model.promoteDue(limit);
  if (promoted > 0) model.ring();
  return { promoted, dueInMs: model.dueInMs() };
}

export function note(model: QueueModel, call: NoteCall): boolean {
  if (!model.held(call.worker).has(call.id)) return false;
  if (call.log) {
    const lines = [...(model.logs.get(call.id)?.split('\n') ?? []), call.log];
    model.logs.set(call.id, lines.slice(-LOG_LINES).join('\n'));
  }
  if (call.progress) {
    model.progress.set(call.id, call.progress);
    model.say([{ type: 'progress', id: call.id, name: call.name, attempt: call.attempt }]);
  }
  return true;
}

// ------------------------------------------------------------------------------------------------------ acts of people

export interface BriefJob {
  readonly state: JobState;
  readonly body: string;
  readonly failed: number;
  readonly stalls: number;
  readonly dueAt: number | null;
  readonly worker: string | null;
  readonly progress: string | null;
}

export function get(model: QueueModel, id: string): BriefJob | null {
  const body = model.jobs.get(id);
  const keptUntil = model.completed.get(id);
  if (body === undefined || (keptUntil !== undefined && keptUntil <= model.now)) return null;
  const at = model.delayed.get(id);
  const dueAt = at === undefined ? null : Math.floor(at);
  const common = {
    body,
    failed: model.attempts.get(id) ?? 0,
    stalls: model.stalls.get(id) ?? 0,
    progress: model.progress.get(id) ?? null,
    dueAt,
    worker: null,
  };
  if (dueAt !== null) return { ...common, state: 'delayed' };
  if (model.dead.has(id)) return { ...common, state: 'dead' };
  if (keptUntil !== undefined) return { ...common, state: 'completed' };
  const holders = sorted(model.leases).filter(([worker]) => model.held(worker).has(id));
  const worker = holders.at(-1)?.[0];
  return worker === undefined ? { ...common, state: 'waiting' } : { ...common, state: 'active', worker };
}

export function counts(model: QueueModel): JobCounts & { paused: boolean } {
  const kept = [...model.completed.values()].filter((until) => until > model.now);
  return {
    waiting: model.wait.length + model.suspects.length + model.prioritized.size,
    delayed: model.delayed.size,
    active: [...model.leases.keys()].reduce((sum, worker) => sum + model.held(worker).size, 0),
    completed: kept.length,
    dead: model.dead.size,
    paused: model.pausedAt !== null,
  };
}

export function remove(model: QueueModel, id: string): 'removed' | 'not-found' | 'active' {
  const keptUntil = model.completed.get(id);
  if (!model.jobs.has(id) || (keptUntil !== undefined && keptUntil <= model.now)) return 'not-found';
  for (const worker of model.leases.keys()) if (model.held(worker).has(id)) return 'active';
  const name = model.nameOf(id);
  const zsets = [model.prioritized, model.delayed, model.dead, model.completed];
  const found = zsets.map((zset) => zset.delete(id)).includes(true);
  if (!found && !takeOut(model.suspects, id)) takeOut(model.wait, id);
  model.results.delete(id);
  model.forget(id);
  model.say([{ type: 'removed', id, name, reason: 'asked' }]);
  return 'removed';
}

export function cancel(model: QueueModel, id: string, reason: string): CancelAnswer {
  const keptUntil = model.completed.get(id);
  if (!model.jobs.has(id) || (keptUntil !== undefined && keptUntil <= model.now)) return 'not-found';
  for (const worker of model.leases.keys()) {
    if (!model.held(worker).has(id)) continue;
    if (!model.toCancel.has(id)) model.toCancel.set(id, reason);
    return 'signalled';
  }
  const found = [model.prioritized, model.delayed].map((zset) => zset.delete(id)).includes(true);
  if (!found && !takeOut(model.suspects, id) && !takeOut(model.wait, id)) return 'not-found';
  model.say(model.endCancelled([id], () => reason, 0));
  return 'cancelled';
}

function takeOut(line: string[], id: string): boolean {
  const at = line.indexOf(id);
  if (at !== -1) line.splice(at, 1);
  return at !== -1;
}

export function retryDead(
  model: QueueModel,
  which: { ids: readonly string[] } | { limit: number },
): { retried: readonly string[] } {
  const asked =
    'ids' in which
      ? which.ids
      : sorted(model.dead)
          .map(([id]) => id)
          .slice(0, which.limit);
  const retried = asked.filter((id) => model.jobs.get(id) && model.dead.delete(id));
  for (const id of retried) {
    model.forgetTraces(id);
    model.attempts.set(id, 0);
    model.wait.push(id);
    model.ring();
  }
  model.say(retried.map((id) => ({ type: 'added', id, name: model.nameOf(id) })));
  return { retried };
}

export function removeDead(
  model: QueueModel,
  which: { ids: readonly string[] } | { limit: number },
): { removed: readonly string[] } {
  const asked = 'ids' in which ? which.ids : firstOf(model.dead, which.limit);
  return takeAway(
    model,
    asked.filter((id) => model.dead.has(id)),
    'asked',
  );
}

/** Of any age: bodies here do not say when they were added. */
export function clean(
  model: QueueModel,
  state: 'waiting' | 'delayed' | 'completed' | 'dead',
  limit: number,
): { removed: readonly string[] } {
  const kept = new Map([...model.completed].filter(([, until]) => until > model.now));
  const places = {
    waiting: [model.wait, model.suspects, firstOf(model.prioritized, limit)],
    delayed: [firstOf(model.delayed, limit)],
    completed: [firstOf(kept, limit)],
    dead: [firstOf(model.dead, limit)],
  };
  const removed: string[] = [];
  for (const place of places[state])
    removed.push(...takeAway(model, place.slice(0, limit - removed.length), 'cleaned').removed);
  return { removed };
}

/** What is kept of completed jobs, or else of the dead, beyond its age or number. */
export function trim(model: QueueModel): number {
  const before = model.completed.size;
  model.trimCompleted();
  if (model.completed.size < before) return before - model.completed.size;
  const says = model.trimDead();
  model.say(says);
  return says.length;
}

function firstOf(zset: ReadonlyMap<string, number>, limit: number): string[] {
  return sorted(zset)
    .map(([id]) => id)
    .slice(0, limit);
}

function takeAway(model: QueueModel, ids: readonly string[], reason: string): { removed: readonly string[] } {
  const names = ids.map((id) => model.nameOf(id));
  const gone = new Set(ids);
  model.wait = model.wait.filter((id) => !gone.has(id));
  model.suspects = model.suspects.filter((id) => !gone.has(id));
  for (const id of ids) {
    for (const zset of [model.prioritized, model.delayed, model.dead, model.completed]) zset.delete(id);
    model.results.delete(id);
    model.forget(id);
  }
  model.say(ids.map((id, i) => ({ type: 'removed', id, name: names[i]!, reason })));
  return { removed: ids };
}

export function promoteNow(model: QueueModel, id: string): 'promoted' | 'not-found' | 'not-delayed' {
  if (!model.jobs.has(id)) return 'not-found';
  if (!model.delayed.delete(id)) return 'not-delayed';
  const priority = model.priorities.get(id);
  model.priorities.delete(id);
  if (priority === undefined) model.wait.push(id);
  else model.prioritized.set(id, model.nextRank(priority));
  model.ring();
  return 'promoted';
}

export function pause(model: QueueModel): boolean {
  if (model.pausedAt !== null) return false;
  model.pausedAt = model.now;
  for (const worker of model.leases.keys()) {
    const record = model.records.get(worker);
    if (record?.seq !== undefined) record.pause = String(model.now);
  }
  model.say([{ type: 'paused', id: '' }]);
  return true;
}

export function resume(model: QueueModel): boolean {
  if (model.pausedAt === null) return false;
  model.pausedAt = null;
  model.ring();
  model.say([{ type: 'resumed', id: '' }]);
  return true;
}

/** What expires by itself stays: lanes, and the records of workers without a lease; and the number of the last event. */
export function obliterate(model: QueueModel, force: boolean): 'obliterated' | 'active' {
  const leased = [...model.leases.keys()];
  if (!force && leased.some((worker) => model.held(worker).size > 0)) return 'active';
  for (const worker of leased) {
    model.active.delete(worker);
    model.records.delete(worker);
  }
  const { jobs, prioritized, delayed, priorities, attempts, stalls, failures, dead, completed } = model;
  for (const map of [jobs, prioritized, delayed, priorities, attempts, stalls, failures, dead, completed])
    map.clear();
  for (const map of [
    model.results,
    model.progress,
    model.logs,
    model.leases,
    model.toCancel,
    model.cancelled,
  ])
    map.clear();
  model.wait = [];
  model.suspects = [];
  model.bells.clear();
  model.pausedAt = null;
  model.ranks = 0;
  model.tallies.clear();
  return 'obliterated';
}
