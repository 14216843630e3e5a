import { counted } from '../job/text.js';
import type { AuditReport, Violation } from '../job/audit-report.js';
import type { JobCounts } from '../job/job-state.js';

/** Places of a job, apart from the active sets. */
const PLACES = ['wait', 'suspects', 'prioritized', 'grouped', 'delayed', 'dead', 'completed'] as const;
/** Only for jobs that have not completed. */
const UNFINISHED = ['attempts', 'stalls'] as const;
const MORE_KEYS = [
  ...UNFINISHED,
  'failures',
  'results',
  'progress',
  'logs',
  'priorities',
  'toCancel',
  'slots',
] as const;

/** The keys that hold ids, in the order of the answer. */
export const AUDITED = ['jobs', ...PLACES, ...MORE_KEYS] as const;

export type AuditedKey = (typeof AUDITED)[number];

const BIT = Object.fromEntries(AUDITED.map((key, i) => [key, 1 << i])) as Record<AuditedKey, number>;
const TWICE = { wait: 1 << 20, suspects: 1 << 21 } as const;

/** The facts about a worker, apart from the ids that it holds. */
interface HolderFacts {
  readonly leaseAt: number | null;
  /** How long its leases are, if known. */
  readonly leaseMs: number | null;
  /** Whether it has a record; without one it cannot settle jobs. */
  readonly known: boolean;
  readonly held: number;
}

/**
 * The text of an id for messages. The audit gives an unreadable id (not UTF-8, empty, or with a line break) as a line break and
 * its bytes in hex.
 */
export function shownId(id: string): string {
  return id.startsWith('\n') ? `"0x${id.slice(1)}"` : JSON.stringify(id);
}

/**
 * Collects the keys that each id of a queue is in, and derives the violations. It stores one number per id, because there may be
 * millions.
 */
export class AuditFacts {
  private readonly marks = new Map<string, number>();
  private readonly holdersOf = new Map<string, string[]>();
  private readonly unreadable = new Map<string, AuditedKey[]>();
  private readonly workers = new Map<string, HolderFacts>();

  /** How many jobs in `completed` are cancelled ones. */
  cancelled = 0;

  see(key: AuditedKey, ids: readonly string[]): void {
    const bit = BIT[key];
    for (const id of ids) {
      const before = this.marks.get(id) ?? 0;
      const twice = (before & bit) !== 0 && (key === 'wait' || key === 'suspects') ? TWICE[key] : 0;
      this.marks.set(id, before | bit | twice);
    }
  }

  /** A counter of the job in this key cannot be read. For `jobs`: the body is in the wrong hash. */
  seeUnreadable(key: AuditedKey, id: string): void {
    this.unreadable.set(id, [...(this.unreadable.get(id) ?? []), key]);
  }

  seeHeld(worker: string, ids: readonly string[]): void {
    for (const id of ids) {
      if (!this.marks.has(id)) this.marks.set(id, 0);
      const holders = this.holdersOf.get(id);
      if (!holders) this.holdersOf.set(id, [worker]);
      else if (!holders.includes(worker)) holders.push(worker);
    }
  }

  seeWorker(worker: string, facts: HolderFacts): void {
    this.workers.set(worker, facts);
  }

  get checked(): number {
    return this.marks.size;
  }

  counts(): JobCounts {
    const counts = {
      waiting: 0,
      delayed: 0,
      active: this.holdersOf.size,
      completed: 0,
      dead: 0,
      cancelled: this.cancelled,
    };
    const waiting = BIT.wait | BIT.suspects | BIT.prioritized | BIT.grouped;
    for (const marks of this.marks.values()) {
      if (marks & waiting) counts.waiting += 1;
      if (marks & BIT.delayed) counts.delayed += 1;
      if (marks & BIT.completed) counts.completed += 1;
      if (marks & BIT.dead) counts.dead += 1;
    }
    // Completed and cancelled jobs share one key.
    counts.completed -= this.cancelled;
    return counts;
  }

  violations(now: number, leaseMs: number): Violation[] {
    return [...this.ofJobs(), ...this.ofWorkers(now, leaseMs)];
  }

  report(violations: readonly Violation[]): AuditReport {
    return { violations, checked: this.checked, counts: this.counts() };
  }

  private *ofJobs(): Generator<Violation> {
    for (const [id, marks] of this.marks) {
      const places: string[] = PLACES.filter((place) => marks & BIT[place]);
      for (const worker of this.holdersOf.get(id) ?? []) places.push(`active:${worker}`);
      const job = `job ${shownId(id)}`;
      const about = (kind: Violation['kind'], where: readonly string[], text: string): Violation => ({
        kind,
        id,
        worker: null,
        where,
        text: `${job} ${text}`,
      });
      const hasBody = (marks & BIT.jobs) !== 0;
      if (id.startsWith('\n')) {
        const others = AUDITED.filter((key) => marks & BIT[key] && !places.includes(key));
        yield about('unreadable', [...places, ...others], 'has an id that cannot be read');
        continue;
      }
      if (!hasBody && places.length > 0)
        yield about('no-body', places, `is in ${and(places)} without a body`);
      if (hasBody && places.length === 0) yield about('no-place', ['jobs'], 'has a body and is in no place');
      if (places.length > 1) yield about('two-places', places, `is in ${and(places)} at once`);
      for (const line of ['wait', 'suspects'] as const) {
        if (marks & TWICE[line]) yield about('repeated', [line], `is more than once in ${line}`);
      }
      const strays = MORE_KEYS.filter(
        (key) => marks & BIT[key] && !belongs(key, marks, hasBody, this.holdersOf.has(id)),
      );
      if (strays.length > 0)
        yield about('stray', strays, `has entries in ${and(strays)} that do not belong to it`);
      const unreadable = this.unreadable.get(id);
      if (unreadable?.[0] === 'jobs') yield about('unreadable', unreadable, 'has a body in the wrong hash');
      else if (unreadable)
        yield about('unreadable', unreadable, `has no readable number in ${and(unreadable)}`);
    }
  }

  private *ofWorkers(now: number, leaseMs: number): Generator<Violation> {
    for (const [worker, { leaseAt, leaseMs: ownMs, known, held }] of this.workers) {
      const about = (kind: Violation['kind'], where: readonly string[], text: string): Violation => ({
        kind,
        id: null,
        worker,
        where,
        text: `worker ${JSON.stringify(worker)} ${text}`,
      });
      const active = `active:${worker}`;
      const longestMs = ownMs ?? leaseMs;
      if (leaseAt !== null && leaseAt > now + longestMs)
        yield about(
          'lease-ahead',
          ['workers'],
          `has a lease for ${leaseAt - now} ms, more than ${longestMs} ms`,
        );
      if (held === 0) continue;
      if (leaseAt === null)
        yield about('no-lease', [active, 'workers'], `holds ${counted(held, 'job')} without a lease`);
      if (!known && (leaseAt === null || leaseAt > now))
        yield about(
          'no-record',
          [active, `worker:${worker}`],
          `holds ${counted(held, 'job')} and has no record`,
        );
    }
  }
}

/** Whether a job in these places may have data in this key. */
function belongs(key: (typeof MORE_KEYS)[number], marks: number, hasBody: boolean, isHeld: boolean): boolean {
  const isCompleted = (marks & BIT.completed) !== 0;
  if (key === 'results') return isCompleted;
  if (key === 'priorities') return (marks & BIT.delayed) !== 0;
  if (key === 'toCancel' || key === 'slots') return hasBody && isHeld;
  if (key === 'attempts' || key === 'stalls') return hasBody && !isCompleted;
  return hasBody;
}

function and(names: readonly string[]): string {
  return names.join(' and ');
}
