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
import { RULES } from '../job/rules.js';

/** Jobs that one call takes back at most. */
const RECOVER = 500;
/** Leases that one answer names at most, of those that end soon and of those that lie too far ahead. */
const OVERDUE = 100;

/** One sign of life for all the jobs a worker holds. A worker that holds nothing needs no lease. */
export function beat(
  queue: MemoryQueue,
  name: string,
  { leaseMs, recordMs, heard }: { leaseMs: number; recordMs: number; heard: string },
): BeatAnswer {
  const worker = queue.workers.get(name);
  const record = worker?.recordAt(queue.now);
  if (!worker || !record?.last) return { kind: 'unknown-worker' };
  if (worker.held.size > 0) worker.leaseAt = queue.now + leaseMs;
  worker.note({ until: queue.now + recordMs });
  if (worker.record!.pause === heard) delete worker.record!.pause;
  const { pause: pauseMark } = worker.record!;
  const cancels = new Map<string, string>();
  if (queue.marked > 0)
    for (const { id, cancel } of worker.held.values()) if (cancel !== null) cancels.set(id, cancel);
  const exchanges = record.last.seq + (record.beside?.seq ?? 0);
  return { kind: 'alive', held: worker.held.size, exchanges, cancels, ...(pauseMark && { pauseMark }) };
}

/** Leases that are over or nearly so, and those that lie further ahead than one lease can: the clock stepped back. */
export function overdue(queue: MemoryQueue, withinMs: number, leaseMs: number) {
  const { now } = queue;
  const all = queue.leased();
  const near = all.filter(({ leaseAt }) => leaseAt <= now + withinMs).slice(0, OVERDUE);
  const far = all
    .filter(({ leaseAt }) => leaseAt > now + leaseMs)
    .toReversed()
    .slice(0, OVERDUE);
  return [...near, ...far].map(({ name, leaseAt }) => ({ worker: name, endsInMs: leaseAt - now }));
}

/** Takes the jobs of a worker whose lease is over back to the line, a bounded number per call, and counts a stall for each. */
export function recover(
  queue: MemoryQueue,
  call: RecoverCall,
  limits: QueueLimits,
  recordMs: number,
): RecoverAnswer {
  const { now } = queue;
  const worker = queue.workers.get(call.worker);
  const lease = worker?.leaseAt ?? null;
  if (!worker || lease === null) return { kind: 'alive' };
  const record = worker.recordAt(now);
  // The clock was stepped back: no lease may be longer than one lease, as long as its worker takes them.
  const longest = record?.leaseMs ?? call.leaseMs;
  if (lease > now + longest) {
    worker.leaseAt = now + longest;
    return { kind: 'alive' };
  }
  if (lease > now + call.beatMs) return { kind: 'alive' };
  // A clock stepped forward makes every lease look over at once: so a lease is over only when a beat has passed since it was
  // first in doubt, and the worker has not used that time. A mark that is much older is of another step.
  const since = record?.doubt?.lease === lease ? record.doubt.since : null;
  if (since === null || since > now || now - since > 2 * longest) {
    worker.note({ doubt: { lease, since: now }, until: now + recordMs });
    return { kind: 'doubted', againInMs: Math.max(call.beatMs, lease - now) };
  }
  const waitMs = Math.max(lease - now, since + call.beatMs - now);
  if (waitMs > 0) return { kind: 'doubted', againInMs: waitMs };
  return takeFrom(queue, worker, call.maxStalls, limits);
}

function takeFrom(
  queue: MemoryQueue,
  worker: MemoryWorker,
  maxStalls: number,
  limits: QueueLimits,
): RecoverAnswer {
  const taken = [...worker.held.values()].slice(0, RECOVER).toSorted((a, b) => byBytes(a.id, b.id));
  const ended: Ended[] = [];
  const jobs = taken.filter((job) => queue.takeBack(job, ended));
  const more = worker.held.size > 0;
  if (more) {
    // Without its number the worker is unknown from now on: it must not settle or claim under this name again.
    if (worker.record) worker.note({ last: null, beside: null, until: worker.record.until });
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
  if (waiting.length + suspects.length > 0) queue.ring();
  queue.say(says, limits);
  return { kind: 'recovered', ...answer, more };
}

function idOf({ id }: MemoryJob): string {
  return id;
}

/** Compares what a worker holds with what it knows, should they have come to differ. */
export function adopt(queue: MemoryQueue, name: string, known: readonly string[]): AdoptAnswer {
  const held = queue.workers.get(name)?.held ?? new Map<string, MemoryJob>();
  const isKnown = new Set(known);
  return {
    unknown: [...held.keys()].filter((id) => !isKnown.has(id)),
    lost: known.filter((id) => !held.has(id)),
    buried: [],
  };
}

/** Gives held jobs back to the head of the line; no attempt is counted. Those that were cancelled end. */
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
  const says = queue.endCancelled(ended, 1);
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
