import type { MemoryJob, Place } from './memory-job.js';

/** A line of jobs, first in first out, from which any job can be removed. */
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
      // The caller may remove the job.
      const { next } = job;
      yield job;
      job = next;
    }
  }
}

/**
 * Jobs ordered by score, then by the bytes of their ids, like a sorted set of Redis. It is a heap, and each job knows its index.
 */
export class Ranking {
  private readonly heap: MemoryJob[] = [];
  /** All jobs in order, until something changes. */
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

  /** All jobs in order. */
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

/**
 * Compares texts by their UTF-8 bytes, as Redis sorts ids of equal score. `<` compares UTF-16 units, which gives another order if
 * one unit is a surrogate and the other is above the surrogates.
 */
export function byBytes(a: string, b: string): number {
  if (a === b) return 0;
  const end = Math.min(a.length, b.length);
  for (let at = 0; at < end; at++) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x !== y) return x >= 0xd800 && y >= 0xd800 ? lifted(x) - lifted(y) : x - y;
  }
  return a.length - b.length;
}

/** Moves surrogates above all other UTF-16 units. */
function lifted(unit: number): number {
  return unit > 0xdfff ? unit - 0x800 : unit + 0x2000;
}
