import type { EnqueueAnswer, EnqueueCall, EnqueueJob, QueueLimits } from '../contract/engine.js';
import type { Saying } from './event-log.js';
import type { MemoryQueue } from './memory-queue.js';

/** Adds jobs. A job whose id is already in the queue, in any state, stays as it is and is listed in the answer. */
export function enqueue(queue: MemoryQueue, call: EnqueueCall, limits: QueueLimits): EnqueueAnswer {
  const { lane, seq, rememberMs, replication } = call;
  const before = laneAt(queue, lane);
  if (before && before.seq > seq) return { kind: 'stale' };
  // There are no replicas to wait for.
  const replicas = replication ? { replicas: replication.replicas } : {};
  if (before?.seq === seq) return { kind: 'stored', duplicates: before.duplicates, ...replicas };

  const earliest = queue.delayed.first?.score ?? Infinity;
  const now = call.jobs.filter((job) => !isLater(job));
  const later = call.jobs.filter(isLater);
  const duplicates = new Set<string>();
  let sooner = false;
  // In the order in which Redis stores them: jobs without a priority first.
  for (const job of [...now.filter(isPlain), ...now.filter((one) => !isPlain(one)), ...later]) {
    const created = queue.create(job.id, job.body);
    const { priority = 0 } = job;
    if (!created) duplicates.add(job.id);
    else if (!isLater(job)) queue.lineUp(created, priority);
    else {
      const dueAt = job.dueAt ?? queue.now + (job.delayMs ?? 0);
      queue.delay(created, dueAt, priority);
      sooner ||= created.score < earliest;
    }
  }
  if (sooner) queue.ringSooner();
  else if (now.some(({ id }) => !duplicates.has(id))) queue.ring();

  queue.lanes.set(lane, { seq, duplicates: [...duplicates], until: queue.now + Math.max(rememberMs, 1) });
  if (duplicates.size < call.jobs.length) {
    queue.say(
      [...now, ...later].map((job) => (duplicates.has(job.id) ? null : added(queue, job))),
      limits,
    );
  }
  return { kind: 'stored', duplicates: [...duplicates], ...replicas };
}

function laneAt(queue: MemoryQueue, lane: string) {
  const { lanes, now } = queue;
  if (!lanes.has(lane)) for (const [name, { until }] of lanes) if (until <= now) lanes.delete(name);
  const record = lanes.get(lane);
  return record && record.until > now ? record : undefined;
}

function isPlain(job: EnqueueJob): boolean {
  return !job.priority;
}

function isLater(job: EnqueueJob): boolean {
  return Boolean(job.delayMs) || job.dueAt !== undefined;
}

function added({ now }: MemoryQueue, job: EnqueueJob): Saying {
  const { id, name, delayMs, dueAt } = job;
  if (!isLater(job)) return { type: 'added', id, name };
  return { type: 'delayed', id, name, delayMs: delayMs ?? Math.max(0, Math.ceil(dueAt! - now)) };
}
