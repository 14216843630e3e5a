import type { Redis } from 'ioredis';

/** The least speed that is expected of a connection, in bytes per ms: 0.5 Mbit/s. */
const LEAST_PER_MS = 64;
/** A connection may become this many times slower than it was measured. */
const SLOWER = 4;
/** The measured speed grows at most by this factor at a time, because a short burst says little about the connection. */
const GROWTH = 1.5;
/** The speed of the connection is measured only with commands of at least this many bytes. */
const MEASURED = 16 * 1024;

/** Internal field of Node's sockets: bytes that the kernel has not taken yet. */
interface Handle {
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/** Watches the bytes on one connection. A connection is silent while no byte moves. A transfer that takes long is not silent. */
export class Traffic {
  /** When a byte was last seen to move, by `performance.now()`. */
  movedAt = 0;
  /** Bytes of commands that have no answer yet. */
  private unanswered = 0;
  private perMs = LEAST_PER_MS;
  private read = 0;
  private written = 0;
  private queued = 0;

  /** Resets the measurements for a new connection. */
  begin(): void {
    this.perMs = LEAST_PER_MS;
    this.movedAt = performance.now();
  }

  sent(bytes: number): void {
    this.unanswered += bytes;
  }

  /** Called when a command of this size ended. */
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

  /**
   * How many ms a healthy connection may look silent. The process cannot see bytes that the kernel has accepted and not delivered
   * yet.
   */
  get unseenMs(): number {
    return (Math.max(0, this.unanswered - this.written) / this.perMs) * SLOWER;
  }
}
