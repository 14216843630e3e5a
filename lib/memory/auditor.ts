import { AUDITED, AuditFacts, type AuditedKey } from '../contract/audit-facts.js';
import type { QueueLimits } from '../contract/engine.js';
import { RULES } from '../job/rules.js';
import type { AuditReport, Repair, RepairReport, Violation } from '../job/audit-report.js';
import { recover } from './leases.js';
import type { MemoryJob } from './memory-job.js';
import type { MemoryQueue } from './memory-queue.js';
import type { MemoryWorker } from './memory-worker.js';

/** The fields that Redis keeps besides a job, and which jobs have them. */
const FIELDS: Readonly<Partial<Record<AuditedKey, (job: MemoryJob) => boolean>>> = {
  attempts: ({ failed, started }) => failed > 0 || started,
  stalls: ({ stalls }) => stalls > 0,
  failures: ({ failure }) => failure !== null,
  results: ({ end }) => end !== null,
  progress: ({ progress }) => progress !== null,
  logs: ({ logs }) => logs.length > 0,
  priorities: ({ priority }) => priority > 0,
  toCancel: ({ cancel }) => cancel !== null,
};

/**
 * Makes the same checks as on Redis. No other program can write here, so it can only find a lease that ends too late because the
 * clock was set back.
 */
export function audit(queue: MemoryQueue, leaseMs: number): AuditReport {
  const facts = new AuditFacts();
  const jobs = [...queue.jobs.values()];
  for (const key of AUDITED) {
    const has = FIELDS[key] ?? (({ place }: MemoryJob) => key === 'jobs' || key === place);
    facts.see(
      key,
      jobs.filter(has).map(({ id }) => id),
    );
  }
  facts.cancelled = jobs.filter(({ state }) => state === 'cancelled').length;
  for (const worker of queue.leased()) {
    facts.seeHeld(worker.name, [...worker.held.keys()]);
    facts.seeWorker(worker.name, {
      leaseAt: worker.leaseAt,
      leaseMs: worker.recordAt(queue.now)?.leaseMs ?? null,
      known: isKnown(queue, worker),
      held: worker.held.size,
    });
  }
  const violations: readonly Violation[] = facts.violations(queue.now, leaseMs);
  return facts.report(violations);
}

interface RepairSettings {
  readonly maxStalls: number;
  readonly limits: QueueLimits;
}

/** Repairs leases. Nothing else can be wrong. */
export function repair(queue: MemoryQueue, settings: RepairSettings): RepairReport {
  const { violations, checked } = audit(queue, settings.limits.leaseMs);
  const names = new Set(violations.map(({ worker }) => worker));
  const broken = [...queue.workers.values()].filter(({ name }) => names.has(name));
  return { repairs: broken.flatMap((worker) => repairWorker(queue, worker, settings)), checked };
}

/** Gives a known worker a lease of normal length. An unknown worker cannot settle its jobs, so they are taken back. */
function repairWorker(queue: MemoryQueue, worker: MemoryWorker, settings: RepairSettings): Repair[] {
  const { now } = queue;
  const { leaseMs } = settings.limits;
  if (worker.held.size > 0 && !isKnown(queue, worker)) return takeBack(queue, worker, settings);
  worker.leaseAt = now + (worker.recordAt(now)?.leaseMs ?? leaseMs);
  const text = `worker ${JSON.stringify(worker.name)} has a lease of the right length again`;
  return [{ did: 'leased', id: null, worker: worker.name, text }];
}

function takeBack(queue: MemoryQueue, worker: MemoryWorker, settings: RepairSettings): Repair[] {
  const { maxStalls, limits } = settings;
  const { leaseMs } = limits;
  const { now } = queue;
  const beatMs = leaseMs / 4;
  worker.leaseAt = now;
  worker.note({ doubt: { lease: now, since: now - beatMs }, until: now + RULES.workerRecordMs });
  const ids: string[] = [];
  for (let more = true; more;) {
    const answer = recover(queue, { worker: worker.name, beatMs, leaseMs, maxStalls }, limits);
    if (answer.kind !== 'recovered') break;
    ids.push(...answer.waiting, ...answer.suspects, ...answer.dead);
    more = answer.more;
  }
  return ids.map((id) => ({
    did: 'recovered',
    id,
    worker: worker.name,
    text: `job ${JSON.stringify(id)} was taken back from worker ${JSON.stringify(worker.name)}, which is not known; a stall is counted`,
  }));
}

function isKnown(queue: MemoryQueue, worker: MemoryWorker): boolean {
  return worker.recordAt(queue.now)?.last != null;
}
