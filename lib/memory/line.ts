import type { MemoryJob } from './memory-job.js';

/** Jobs one behind the other; any of them can step out. */
export class Line {
  private head: MemoryJob | null = null;
  private tail: MemoryJob | null = null;
  private count = 0;

  constructor(readonly place: 'wait' | 'suspects') {}

  get size(): number {
    return this.count;
  }

  get first(): MemoryJob | null {
    return this.head;
  }

  push(job: MemoryJob): void {
    job.place = this.place;
    job.previous = this.tail;
    job.next = null;
    if (this.tail) this.tail.next = job;
    else this.head = job;
    this.tail = job;
    this.count += 1;
  }

  unshift(job: MemoryJob): void {
    job.place = this.place;
    job.previous = null;
    job.next = this.head;
    if (this.head) this.head.previous = job;
    else this.tail = job;
    this.head = job;
    this.count += 1;
  }

  remove(job: MemoryJob): void {
    if (job.previous) job.previous.next = job.next;
    else this.head = job.next;
    if (job.next) job.next.previous = job.previous;
    else this.tail = job.previous;
    job.previous = null;
    job.next = null;
    job.place = null;
    this.count -= 1;
  }

  shift(): MemoryJob | null {
    const job = this.head;
    if (job) this.remove(job);
    return job;
  }

  clear(): void {
    this.head = null;
    this.tail = null;
    this.count = 0;
  }

  *[Symbol.iterator](): Generator<MemoryJob> {
    let job = this.head;
    while (job) {
      // Whoever is given a job may take it out.
      const { next } = job;
      yield job;
      job = next;
    }
  }
}
