import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Blocks are known to within this time. The timer runs outside of JavaScript. */
const RESOLUTION_MS = 50;
/** Shorter blocks are not reported, so the record of an idle process does not change. */
const LEAST_MS = 100;
const KEPT_MS = 60_000;

/** In ns. */
type Delays = Pick<ReturnType<typeof monitorEventLoopDelay>, 'enable' | 'disable' | 'reset' | 'max'>;

/** Measures for how long the event loop of this process was blocked: meanwhile no job starts, ends or times out. */
export class LoopWatch {
  private longest = { ms: 0, at: -Infinity };

  constructor(private readonly delays: Delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })) {}

  start(): void {
    this.delays.enable();
  }

  stop(): void {
    this.delays.disable();
  }

  /** The longest block that was seen in the last minute, in ms; 0 if none was long. */
  blockedMs(): number {
    const { delays } = this;
    const now = performance.now();
    const ms = Math.round(delays.max / 1e6) - RESOLUTION_MS;
    if (now - this.longest.at > KEPT_MS) this.longest = { ms: 0, at: now };
    // A reset loses the delay that is being measured, so it is only done after a block.
    if (ms >= LEAST_MS) {
      delays.reset();
      if (ms >= this.longest.ms) this.longest = { ms, at: now };
    }
    return this.longest.ms;
  }
}
