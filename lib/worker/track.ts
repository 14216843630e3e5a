import type { ExchangeCall } from '../contract/engine.js';

/** One of the two ways of a worker to the store: one exchange at a time, with numbers of their own. */
export class Track {
  /** The number of the last one that was answered. */
  seq = 0;
  /** The one on its way. */
  call: ExchangeCall | null = null;
  sentAt = 0;
  private isRepeated = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(readonly isBeside: boolean) {}

  /** Whether one is on its way that was tried before: what it was given then is not known here yet. */
  get isRepeating(): boolean {
    return this.call !== null && this.isRepeated;
  }

  /** From now on this one is on its way. */
  sends(call: ExchangeCall): void {
    this.call = call;
    this.sentAt = performance.now();
    this.isRepeated = false;
  }

  /** It is made again after a while, with the same number. */
  again(afterMs: number, send: () => void): void {
    this.isRepeated = true;
    this.timer = setTimeout(send, afterMs);
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
