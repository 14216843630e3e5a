import type { ExchangeAnswer, ExchangeCall, NoteCall, Supply, QueueLimits } from '../contract/engine.js';
import { optionsLineOf, withLines } from '../job/job-record.js';
import { activated } from './event-log.js';
import { LimitedClaim, type Claimed, type LimitedAnswer } from './limited-claim.js';
import type { MemoryJob } from './memory-job.js';
import type { MemoryQueue } from './memory-queue.js';
import type { LastExchange, MemoryWorker } from './memory-worker.js';
import { settle } from './settle.js';
import { stopCollecting } from './update.js';
import { RULES } from '../job/rules.js';

/**
 * Settles, promotes and claims. Repeating a worker's last exchange gives the same answer and changes nothing. If the queue has
 * limits, the claim is a second step with its own number.
 */
export function exchange(queue: MemoryQueue, call: ExchangeCall, limits: QueueLimits): ExchangeAnswer {
  const answered = exchangeOnce(queue, call, limits);
  if (answered.kind !== 'exchanged' || !queue.limits.isOn || queue.pausedAt !== null) return answered;
  const limited = {
    isLimited: true as const,
    ...(queue.limits.startsAtOnce && { startsAtOnce: true as const }),
  };
  if (call.want < 1) return { ...answered, ...limited };
  const claimed = claimOnce(queue, call, limits);
  if (!claimed) return { kind: 'stale' };
  const { isCut, supply, isHeldBack } = claimed;
  const held = queue.worker(call.worker).held.size;
  const all = [...answered.claimed, ...claimed.claimed.map((job) => job.claim)];
  return { ...answered, claimed: all, isCut, supply, isHeldBack, held, ...limited };
}

/** The second step; null if the call is older than the last claim of the worker. */
export function claimOnce(queue: MemoryQueue, call: ExchangeCall, limits: QueueLimits): LimitedAnswer | null {
  const { seq } = call;
  const worker = queue.worker(call.worker);
  const which = call.pipelined ? 'limitedPipelined' : 'limited';
  const last = worker.recordAt(queue.now)?.[which] ?? null;
  if (last && seq < last.seq) return null;
  if (last?.seq === seq) {
    const claimed = last.claimedIds.map((id) => worker.held.get(id)).filter((job) => job !== undefined);
    const isLess = last.claimedIds.length < Math.min(call.want, RULES.sortMax);
    return { claimed, isCut: false, supply: isLess ? 'empty' : 'more', isHeldBack: false };
  }
  const answer = new LimitedClaim(queue, worker, call, limits).run();
  const claimedIds = answer.claimed.map(({ id }) => id);
  const { leaseMs } = call;
  worker.note({ [which]: { seq, claimedIds }, leaseMs, until: queue.now + RULES.workerRecordMs });
  return answer;
}

/** The first step; in a queue without limits it is all. */
export function exchangeOnce(queue: MemoryQueue, call: ExchangeCall, limits: QueueLimits): ExchangeAnswer {
  const { seq, leaseMs } = call;
  const worker = queue.worker(call.worker);
  const record = worker.recordAt(queue.now);
  const which = call.pipelined ? 'pipelined' : 'last';
  const last = record?.[which] ?? null;
  if (last === null && seq > 1) return { kind: 'unknown-worker' };
  if (call.pipelined && !record?.last) return { kind: 'unknown-worker' };
  if (last !== null && seq < last.seq) return { kind: 'stale' };
  if (last?.seq === seq) {
    const still = last.claimedIds.map((id) => worker.held.get(id)).filter((job) => job !== undefined);
    return answer(queue, worker, last, still, {
      isCut: false,
      supply: supplyOf(queue, call, last.claimedIds),
    });
  }

  const heldBefore = worker.held.size;
  const slotsBefore = queue.limits.slotsInUse;
  const { lost, cancelled, says, soonest } = settle(queue, worker, call.settled, limits);
  queue.promoteDue(RULES.promoteMax);
  const { claimed, isCut } = queue.limits.isOn ? NOTHING : claim(queue, worker, call);
  // A worker that no longer claims leaves the slots that it has freed to others.
  if (queue.limits.slotsInUse < slotsBefore && call.want < 1) queue.ring();
  if (limits.maxEvents > 0) says.push(...claimed.map(activated));
  if (soonest < Infinity && queue.pausedAt === null && queue.dueInMs! >= soonest - queue.now)
    queue.ringSooner();
  if (claimed.length > 0 || heldBefore > 0)
    worker.leaseAt = worker.held.size > 0 ? queue.now + leaseMs : null;
  const claimedIds = claimed.map(({ id }) => id);
  const until = queue.now + RULES.workerRecordMs;
  worker.note({ [which]: { seq, claimedIds, lost, cancelled }, leaseMs, until });
  queue.say(says, limits);
  return answer(queue, worker, { lost, cancelled }, claimed, {
    isCut,
    supply: isCut ? 'more' : supplyOf(queue, call, claimedIds),
  });
}

const NOTHING: Claimed = { claimed: [], isCut: false };

/** The parts of an answer that do not concern its jobs. */
interface Rest {
  readonly isCut: boolean;
  readonly supply: Supply;
}

export function claim(
  queue: MemoryQueue,
  worker: MemoryWorker,
  { want, maySuspect, maxBytes = Infinity }: ExchangeCall,
): Claimed {
  const { wait, suspects, prioritized } = queue;
  const claimed: MemoryJob[] = [];
  let isCut = false;
  if (queue.pausedAt !== null) return { claimed, isCut };
  const most = Math.min(want, RULES.claimMax);
  let bytes = 0;
  const take = (line: typeof wait | typeof prioritized) => {
    const job = line.first;
    if (!job) return false;
    bytes += Buffer.byteLength(job.body);
    if (bytes > maxBytes && claimed.length > 0) {
      isCut = true;
      return false;
    }
    line.shift();
    queue.hold(job, worker);
    claimed.push(job);
    return true;
  };
  if (most > 0 && maySuspect) take(suspects);
  while (claimed.length < most && !isCut && (take(wait) || (!isCut && take(prioritized))));
  // A suspect that this worker may not take does not count. Otherwise a ring for it would wake this worker again and again.
  const left = wait.size + prioritized.size + (maySuspect ? suspects.size : 0);
  // The ring that woke this worker may have been the only one.
  if (left > 0 && want >= 0) queue.ring();
  return { claimed, isCut };
}

function supplyOf(queue: MemoryQueue, { want }: ExchangeCall, claimedIds: readonly string[]): Supply {
  if (queue.pausedAt !== null) return 'paused';
  // Below 0, shared limits let no job start. The answer then tells whether any job waits outside of lines.
  if (want < 0 && !queue.limits.isOn) return queue.wait.size + queue.prioritized.size > 0 ? 'more' : 'empty';
  return claimedIds.length < Math.min(want, RULES.claimMax) ? 'empty' : 'more';
}

function answer(
  queue: MemoryQueue,
  worker: MemoryWorker,
  { lost, cancelled }: Pick<LastExchange, 'lost' | 'cancelled'>,
  claimed: readonly MemoryJob[],
  rest: Rest,
): Extract<ExchangeAnswer, { kind: 'exchanged' }> {
  return {
    kind: 'exchanged',
    lost,
    ...(cancelled.length > 0 && { cancelled }),
    claimed: claimed.map(({ claim }) => claim),
    claimedAt: queue.now,
    ...rest,
    dueInMs: queue.dueInMs,
    leaseInMs: queue.leaseOfAnotherInMs(worker.name),
    scheduleInMs: queue.scheduleInMs,
    held: worker.held.size,
  };
}

/** Stores progress, log lines or data of a run. Returns false if the worker no longer holds the job. */
export function note(queue: MemoryQueue, call: NoteCall, limits: QueueLimits): boolean {
  const { id, name, attempt, progress, log, data } = call;
  const job = queue.workers.get(call.worker)?.held.get(id);
  if (!job) return false;
  if (data !== undefined) {
    if (optionsLineOf(job.body) === null) return false;
    stopCollecting(queue, job);
    job.body = withLines(job.body, undefined, data);
    queue.say([{ type: 'updated', id, name: job.name }], limits);
  }
  if (log && limits.logsMax > 0)
    job.logs = [...job.logs, ...log.split('\n').map((text) => ({ attempt, text }))].slice(-limits.logsMax);
  if (progress) {
    job.progress = progress;
    queue.boundProgress(job, limits);
    queue.say([{ type: 'progress', id, name, attempt, progress }], limits);
  }
  return true;
}
