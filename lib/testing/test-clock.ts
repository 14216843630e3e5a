/**
 * The clock of a test. It stands still unless it is moved; one that ticks goes on with the real time from where it is, for workers that
 * run by themselves.
 */
export class TestClock {
  private origin = performance.now();

  /** @param startMs ms since 1970. */
  constructor(
    private startMs: number,
    private readonly ticks: boolean,
  ) {}

  now(): number {
    return this.ticks ? this.startMs + Math.floor(performance.now() - this.origin) : this.startMs;
  }

  /** Never back: what is due would no longer be. */
  moveTo(ms: number): void {
    this.startMs += Math.max(0, ms - this.now());
  }
}
