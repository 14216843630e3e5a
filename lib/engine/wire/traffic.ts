import type { Redis } from 'ioredis';

/** Bytes per ms that every line is trusted to carry: 0.5 Mbit/s. */
const LEAST_PER_MS = 64;
/** A line may become so many times slower than it was. */
const SLOWER = 4;
/** The measured speed grows by no more than this at a time: a burst tells little of what a line carries. */
const GROWTH = 1.5;
/** Bytes of one command from which its answer tells the speed of the line. */
const MEASURED = 16 * 1024;

/** As Node has it on every socket; the bytes that the kernel has not taken yet. */
interface Handle {
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/** What moves on one connection. A line is silent when no byte moves, however long a transfer takes. */
export class Traffic {
  /** When a byte was last seen to move, on the clock of `performance.now()`. */
  movedAt = 0;
  /** Bytes of commands that have no answer yet. */
  private unanswered = 0;
  private perMs = LEAST_PER_MS;
  private read = 0;
  private written = 0;
  private queued = 0;

  /** Nothing is known of a new connection. */
  begin(): void {
    this.perMs = LEAST_PER_MS;
    this.movedAt = performance.now();
  }

  sent(bytes: number): void {
    this.unanswered += bytes;
  }

  /** A command of so many bytes, sent then, is over. */
  ended(bytes: number, sentAt: number): void {
    this.unanswered -= bytes;
    if (bytes < MEASURED) return;
    const measured = bytes / Math.max(performance.now() - sentAt, 0.1);
    this.perMs = Math.max(LEAST_PER_MS, Math.min(measured, this.perMs * GROWTH));
  }

  look({ stream }: Redis, now: number): void {
    const { bytesRead, writableLength, _handle: handle } = stream as Redis['stream'] & Handle;
    const queued = handle?.writeQueueSize ?? 0;
    if (bytesRead !== this.read || writableLength < this.written || queued < this.queued) this.movedAt = now;
    this.read = bytesRead;
    this.written = writableLength;
    this.queued = queued;
  }

  /** Ms for which a line with nothing wrong may look silent: nobody is told of what the kernel has taken and not delivered yet. */
  get unseenMs(): number {
    return (Math.max(0, this.unanswered - this.written) / this.perMs) * SLOWER;
  }
}
