import type {
  AdoptAnswer,
  BeatAnswer,
  RecoverAnswer,
  RecoverCall,
  ReleaseCall,
  QueueLimits,
} from '../contract/engine.js';
import { STALLED } from '../contract/upkeep-verbs.js';
import { byBytes } from './lines.js';
import { sayAll } from './event-log.js';
import type { MemoryJob } from './memory-job.js';
import type { Ended, MemoryQueue } from './memory-queue.js';
import type { MemoryWorker } from './memory-worker.js';
import { freeKeysOf } from './unique.js';
import { RULES } from '../job/rules.js';

/** Renews the one lease for all jobs of a worker. A worker without jobs needs none. */
export function beat(queue: MemoryQueue, name: string, leaseMs: number): BeatAnswer {
  const worker = queue.workers.get(name);
  const record = worker?.recordAt(queue.now);
  if (!worker || !record?.last) return { kind: 'unknown-worker' };
  if (worker.held.size > 0) worker.leaseAt = queue.now + leaseMs;
  worker.note({ until: queue.now + RULES.workerRecordMs });
  const cancels = new Map<string, string>();
  if (queue.marked > 0)
    for (const { id, cancel } of worker.held.values()) if (cancel !== null) cancels.set(id, cancel);
  const exchanges = record.last.seq + (record.pipelined?.seq ?? 0);
  return { kind: 'alive', held: worker.held.size, exchanges, cancels };
}

/** Leases that are over or nearly over, and those that end later than possible because the clock was set back. */
export function overdue(queue: MemoryQueue, withinMs: number, leaseMs: number) {
  const { now } = queue;
  const all = queue.leased();
  const near = all.filter(({ leaseAt }) => leaseAt <= now + withinMs).slice(0, RULES.overdueMax);
  const far = all
    .filter(({ leaseAt }) => leaseAt > now + leaseMs)
    .toReversed()
    .slice(0, RULES.overdueMax);
  return [...near, ...far].map(({ name, leaseAt }) => ({ worker: name, endsInMs: leaseAt - now }));
}

/** Returns the jobs of a worker whose lease is over to the line, a limited number per call, and counts a stall for each. */
export function recover(queue: MemoryQueue, call: RecoverCall, limits: QueueLimits): RecoverAnswer {
  const { now } = queue;
  const worker = queue.workers.get(call.worker);
  const lease = worker?.leaseAt ?? null;
  if (!worker || lease === null) return { kind: 'alive' };
  const record = worker.recordAt(now);
  // The lease ends later than any lease of this worker can, so the clock was set back.
  const longest = record?.leaseMs ?? call.leaseMs;
  if (lease > now + longest) {
    worker.leaseAt = now + longest;
    return { kind: 'alive' };
  }
  if (lease > now + call.beatMs) return { kind: 'alive' };
  // If the clock is set forward, all leases seem to end at once. So a lease is over only if the worker does not renew it for one
  // heartbeat interval after it was first in doubt. A much older doubt belongs to another jump of the clock.
  const since = record?.doubt?.lease === lease ? record.doubt.since : null;
  if (since === null || since > now || now - since > 2 * longest) {
    worker.note({ doubt: { lease, since: now }, until: now + RULES.workerRecordMs });
    return { kind: 'doubted', againInMs: Math.max(call.beatMs, lease - now) };
  }
  const waitMs = Math.max(lease - now, since + call.beatMs - now);
  if (waitMs > 0) return { kind: 'doubted', againInMs: waitMs };
  return queue.freeing(() => takeFrom(queue, worker, call.maxStalls, limits));
}

function takeFrom(
  queue: MemoryQueue,
  worker: MemoryWorker,
  maxStalls: number,
  limits: QueueLimits,
): RecoverAnswer {
  const taken = [...worker.held.values()].slice(0, RULES.recoverMax).toSorted((a, b) => byBytes(a.id, b.id));
  const ended: Ended[] = [];
  const jobs = taken.filter((job) => queue.takeBack(job, ended));
  const more = worker.held.size > 0;
  if (more) {
    // Without its sequence number the worker is unknown, so it can no longer settle or claim under this name.
    if (worker.record) {
      const none = { last: null, pipelined: null, limited: null, limitedPipelined: null };
      worker.note({ ...none, until: worker.record.until });
    }
  } else queue.workers.delete(worker.name);

  const says = queue.endCancelled(ended, 1);
  says.push(...sayAll('stalled', jobs));
  const waiting: MemoryJob[] = [];
  const suspects: MemoryJob[] = [];
  const dead: MemoryJob[] = [];
  for (const job of jobs) {
    job.stalls += 1;
    (job.stalls > maxStalls ? dead : job.stalls >= RULES.suspectAfter ? suspects : waiting).push(job);
  }
  for (const job of [...waiting, ...suspects]) queue.limits.release(job, 'moved');
  for (const job of waiting.toReversed()) queue.wait.unshift(job);
  for (const job of suspects) queue.suspects.push(job);
  for (const job of dead) {
    queue.bury(job, STALLED);
    queue.counters.count(queue.now, 'dead', job.name, 1);
  }
  says.push(...sayAll('dead', dead, { reason: 'stalled' }));
  const answer = {
    waiting: waiting.map(idOf),
    suspects: suspects.map(idOf),
    dead: dead.map(idOf),
    cancelled: ended.map(({ job }) => job.id),
  };
  if (dead.length > 0) says.push(...queue.trimDead(limits));
  freeKeysOf(queue, [...ended.map(({ job }) => job), ...dead]);
  if (waiting.length + suspects.length > 0) queue.ring();
  queue.say(says, limits);
  return { kind: 'recovered', ...answer, more };
}

function idOf({ id }: MemoryJob): string {
  return id;
}

/** Compares the jobs that a worker holds here with those it knows. */
export function adopt(queue: MemoryQueue, name: string, known: readonly string[]): AdoptAnswer {
  const held = queue.workers.get(name)?.held ?? new Map<string, MemoryJob>();
  const isKnown = new Set(known);
  return {
    unknown: [...held.keys()].filter((id) => !isKnown.has(id)),
    lost: known.filter((id) => !held.has(id)),
    buried: [],
  };
}

/** Returns held jobs to the head of the line without counting an attempt. Cancelled jobs end. */
export function release(
  queue: MemoryQueue,
  { worker: name, ids, leave }: ReleaseCall,
  limits: QueueLimits,
): { lost: readonly string[] } {
  const worker = queue.worker(name);
  const lost: string[] = [];
  const ended: Ended[] = [];
  const released: MemoryJob[] = [];
  for (const id of ids) {
    const job = worker.held.get(id);
    if (!job) lost.push(id);
    else if (queue.takeBack(job, ended)) released.push(job);
  }
  const says = queue.freeing(() => queue.endCancelled(ended, 1));
  for (const job of released) queue.limits.release(job, 'moved');
  if (released.length > 0) {
    queue.toHead(released);
    queue.ring();
    says.push(...sayAll('released', released));
  }
  queue.say(says, limits);
  if (worker.held.size === 0) {
    worker.leaseAt = null;
    if (leave) queue.workers.delete(name);
  }
  return { lost };
}
