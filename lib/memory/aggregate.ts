import type { EnqueueJob, KeyClaim } from '../contract/engine.js';
import { optionsLineOf, withLines } from '../job/job-record.js';
import type { MemoryJob } from './memory-job.js';
import type { MemoryQueue } from './memory-queue.js';
import { withKey, type Met } from './unique.js';

/** A job that collects the data of many adds. */
interface Collector {
  readonly id: string;
  readonly body: string;
  readonly claim: KeyClaim;
  readonly since: number;
  readonly isNew: boolean;
  readonly items: string[];
  size: number;
  bytes: number;
  till: number;
  isGrown: boolean;
  isOver: boolean;
}

/** The items that one call adds to open jobs, as in `shared/aggregate.lua`. They are stored after all other jobs of the call. */
export class Collecting {
  private readonly openByKey = new Map<string, Collector>();
  private readonly all: Collector[] = [];

  constructor(private readonly queue: MemoryQueue) {}

  /** Adds the data of a job to the open job of its key. Without an open job, the new job becomes the open one, and must be added. */
  take(job: EnqueueJob, claim: KeyClaim): Met {
    const { now } = this.queue;
    const items = itemsIn(job.body) ?? '';
    const known = this.openByKey.get(claim.digest);
    const open = known ?? this.openFor(claim);
    if (open && !known) this.all.push(open);
    const { most = 0, mostBytes = 0, delayMs, longestMs } = claim;
    const bytes = Buffer.byteLength(items);
    if (open && open.size < most && open.bytes + bytes < mostBytes) {
      this.openByKey.set(claim.digest, open);
      open.items.push(items);
      open.size += 1;
      open.bytes += bytes + 1;
      open.isGrown = true;
      open.till = Math.max(now, Math.min(now + delayMs, open.since + longestMs));
      open.isOver = open.size >= most;
      return { duplicate: { id: job.id, state: 'delayed', holder: open.id, size: open.size } };
    }
    if (open) open.isOver = true;
    const made = collector(job.id, job.body, claim, now, now + claim.forMs, true)!;
    this.openByKey.set(claim.digest, made);
    this.all.push(made);
    return {};
  }

  /** Stores the changed jobs, calls `change` for those that existed before, and returns whether one was put into the line. */
  store(change: (job: MemoryJob) => void): boolean {
    const { queue } = this;
    let isWork = false;
    for (const one of this.all) {
      const job = queue.jobs.get(one.id)!;
      if (one.isGrown) {
        const options = optionsLineOf(one.body)!.replace(/^\{"items":\d+/, `{"items":${one.size}`);
        job.body = withLines(one.body, options, `[${one.items.join(',')}]`);
      }
      if (one.isOver) {
        queue.promote(job);
        isWork = true;
      } else if (one.isGrown) {
        const { priority } = job;
        queue.delayed.remove(job);
        queue.delay(job, one.till, priority);
        const row = { holder: one.id, till: one.till, since: one.since, next: '' };
        queue.keys.set(one.claim.digest, row);
      }
      if (one.isGrown && !one.isNew) change(job);
    }
    return isWork;
  }

  private openFor(claim: KeyClaim): Collector | null {
    const row = this.queue.keys.get(claim.digest);
    const job = row && withKey(this.queue, row.holder, claim.digest);
    const isOpen = job?.place === 'delayed' && job.score === row?.till && !job.started && job.failed === 0;
    return isOpen ? collector(job.id, job.body, claim, row.since, row.till, false) : null;
  }
}

function collector(
  id: string,
  body: string,
  claim: KeyClaim,
  since: number,
  till: number,
  isNew: boolean,
): Collector | null {
  const list = itemsIn(body);
  const size = Number(/^\{"items":(\d+)/.exec(optionsLineOf(body) ?? '')?.[1] ?? Number.NaN);
  if (list === undefined || Number.isNaN(size)) return null;
  const bytes = Buffer.byteLength(list) + 2;
  return { id, body, claim, since, till, isNew, items: [list], size, bytes, isGrown: false, isOver: false };
}

/** The data of a body if it is a list, without its brackets. */
function itemsIn(body: string): string | undefined {
  return /^[^\n]+\n[^\n]+\n[^\n]*\n\[([^]+)\]$/.exec(body)?.[1];
}
