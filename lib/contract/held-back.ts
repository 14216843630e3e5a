import type { Log } from './log.js';

/** Work that is held back again and again is logged as over when it was not held back for this time. */
export const QUIET_MS = 60_000;

/** Logs one line when something begins to hold work back, and one when it has not done so for a while. */
export class HeldBack {
  private isBegun = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly logger: Log,
    /** `queue 'email': limits delay its jobs`. */
    private readonly begins: string,
    /** `queue 'email': limits no longer delay its jobs`. */
    private readonly ends: string,
  ) {}

  /** Work is held back now. */
  now(detail = ''): void {
    if (!this.isBegun) this.logger.log(this.begins + detail);
    this.isBegun = true;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** Nothing is held back any more, as far as is known. */
  over(): void {
    if (!this.isBegun || this.timer) return;
    this.timer = setTimeout(() => {
      this.isBegun = false;
      this.timer = undefined;
      this.logger.log(this.ends);
    }, QUIET_MS).unref();
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
