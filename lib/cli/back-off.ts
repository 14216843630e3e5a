/** Seconds to wait after each look in a row that moved nothing; the last one again and again. */
const SECONDS = [0, 1, 1, 2, 3, 5, 8, 13] as const;

/** How long to wait while nothing is due. */
export class BackOff {
  private idle = 0;

  /**
   * Ms to wait after a look: none as long as tasks are moved, then as long as the table says, but never beyond the moment at
   * which the next task is due.
   */
  after({ dispatched, dueInMs }: { readonly dispatched: number; readonly dueInMs: number | null }): number {
    if (dispatched > 0) {
      this.idle = 0;
      return 0;
    }
    const seconds = SECONDS[Math.min(this.idle, SECONDS.length - 1)]!;
    this.idle += 1;
    return Math.min(seconds * 1000, dueInMs ?? Infinity);
  }
}
