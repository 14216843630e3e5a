import type { Socket } from 'node:net';
import { latch } from '../wait.js';

/** Cuts a connection after a number of bytes. */
export class ByteLimit {
  private readonly reached = latch('a byte limit');

  constructor(private left: number) {}

  /** Takes up to `wanted` bytes and returns how many may still be sent. */
  take(wanted: number): number {
    const granted = Math.min(wanted, this.left);
    this.left -= granted;
    if (this.left === 0) this.reached.open();
    return granted;
  }

  get isReached(): boolean {
    return this.left === 0;
  }

  get done(): Promise<void> {
    return this.reached.promise;
  }
}

/** One direction of a connection. Delivers bytes, and perhaps the end, in order: at once, later or never. */
export class Lane {
  delayMs = 0;
  /** Bytes that were delivered. */
  bytes = 0;
  private held = false;
  /**
   * Cut, although its sockets may take a moment to close. Bytes after the cut must not be delivered, because the reader
   * would take them for a continuation.
   */
  private broken = false;
  private readonly queue: { due: number; chunk: Buffer | 'end' }[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly to: Socket,
    private readonly limits: () => readonly ByteLimit[],
    private readonly onLimit: () => void,
  ) {}

  push(chunk: Buffer | 'end'): void {
    if (this.broken && chunk !== 'end') return;
    this.queue.push({ due: performance.now() + this.delayMs, chunk });
    this.pump();
  }

  hold(held: boolean): void {
    this.held = held;
    this.pump();
  }

  clear(): void {
    this.queue.length = 0;
    clearTimeout(this.timer);
  }

  private pump(): void {
    clearTimeout(this.timer);
    for (let head = this.queue[0]; head && !this.held; head = this.queue[0]) {
      const wait = head.due - performance.now();
      if (wait > 0) {
        this.timer = setTimeout(() => this.pump(), Math.ceil(wait));
        return;
      }
      this.queue.shift();
      if (head.chunk === 'end') this.to.destroySoon();
      else this.write(head.chunk);
    }
  }

  private write(chunk: Buffer): void {
    const limits = this.limits().filter((limit) => !limit.isReached);
    const granted = Math.min(chunk.length, ...limits.map((limit) => limit.take(chunk.length)));
    this.bytes += granted;
    if (!limits.some((limit) => limit.isReached)) {
      this.to.write(chunk);
      return;
    }
    // Cut after the last byte has left, like a network that fails in the middle of a message.
    this.broken = true;
    this.clear();
    this.to.write(chunk.subarray(0, granted), this.onLimit);
  }
}
