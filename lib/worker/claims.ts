import type { ClaimedJob } from '../contract/engine.js';

/** Jobs that were claimed and have not started, first in first out; taking one moves nothing. */
export class Claims {
  private jobs: readonly ClaimedJob[] = [];
  private next = 0;

  get size(): number {
    return this.jobs.length - this.next;
  }

  put(claimed: readonly ClaimedJob[]): void {
    this.reset(this.size === 0 ? claimed : this.all().concat(claimed));
  }

  take(): ClaimedJob {
    const job = this.jobs[this.next]!;
    this.next += 1;
    // Else the last body of a batch would be kept until the next one.
    if (this.next === this.jobs.length) this.reset([]);
    return job;
  }

  /** Answers what was there. */
  clear(): readonly ClaimedJob[] {
    const rest = this.all();
    this.reset([]);
    return rest;
  }

  /** Answers those that were there. */
  drop(ids: { has(id: string): boolean }): readonly ClaimedJob[] {
    const all = this.all();
    const dropped = all.filter(({ id }) => ids.has(id));
    if (dropped.length > 0) this.reset(all.filter(({ id }) => !ids.has(id)));
    return dropped;
  }

  all(): readonly ClaimedJob[] {
    return this.jobs.slice(this.next);
  }

  private reset(jobs: readonly ClaimedJob[]): void {
    this.jobs = jobs;
    this.next = 0;
  }
}
