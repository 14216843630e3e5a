import { byBytes } from './by-bytes.js';
import type { MemoryJob, Place } from './memory-job.js';

/** Jobs by a number, the lowest first, and by the bytes of their ids where that is equal: a heap, of which each job knows its slot. */
export class Ranking {
  private readonly heap: MemoryJob[] = [];
  /** All of them in order, for those who walk, until something changes. */
  private ordered: readonly MemoryJob[] | null = null;

  constructor(readonly place: Exclude<Place, 'wait' | 'suspects' | 'active'>) {}

  get size(): number {
    return this.heap.length;
  }

  get first(): MemoryJob | null {
    return this.heap[0] ?? null;
  }

  add(job: MemoryJob, score: number): void {
    job.place = this.place;
    job.score = score;
    this.ordered = null;
    this.rise(job, this.heap.length);
  }

  remove(job: MemoryJob): void {
    const { heap } = this;
    const { slot } = job;
    const last = heap.pop()!;
    this.ordered = null;
    job.slot = -1;
    job.place = null;
    if (last === job) return;
    this.sink(last, slot);
    this.rise(last, last.slot);
  }

  shift(): MemoryJob | null {
    const job = this.first;
    if (job) this.remove(job);
    return job;
  }

  clear(): void {
    this.heap.length = 0;
    this.ordered = null;
  }

  /** In order. */
  sorted(): readonly MemoryJob[] {
    return (this.ordered ??= this.heap.toSorted(compare));
  }

  [Symbol.iterator](): Iterator<MemoryJob> {
    return this.heap[Symbol.iterator]();
  }

  private rise(job: MemoryJob, from: number): void {
    const { heap } = this;
    let slot = from;
    while (slot > 0) {
      const above = (slot - 1) >> 1;
      const other = heap[above]!;
      if (compare(other, job) <= 0) break;
      heap[slot] = other;
      other.slot = slot;
      slot = above;
    }
    heap[slot] = job;
    job.slot = slot;
  }

  private sink(job: MemoryJob, from: number): void {
    const { heap } = this;
    let slot = from;
    for (;;) {
      let below = 2 * slot + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && compare(heap[below + 1]!, heap[below]!) < 0) below += 1;
      const other = heap[below]!;
      if (compare(job, other) <= 0) break;
      heap[slot] = other;
      other.slot = slot;
      slot = below;
    }
    heap[slot] = job;
    job.slot = slot;
  }
}

function compare(a: MemoryJob, b: MemoryJob): number {
  return a.score - b.score || byBytes(a.id, b.id);
}
