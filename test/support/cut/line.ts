import type { Socket } from 'node:net';

/** Bytes per chunk: small, so that connections take turns. */
const CHUNK = 16 * 1024;
/** The precision of timers in ms: a line may be ahead by this much. */
const EXACT_MS = 1;

/** One direction of a line with a limited bandwidth, shared by several connections. */
export class Line {
  bytesPerSecond = Infinity;
  private freeAt = 0;

  /**
   * Sends bytes after those that are on their way and returns the ms until the last one has arrived. `haveWaited`: they were there
   * when the line became free, so it has sent them since then, also if a busy machine calls this later.
   */
  take(bytes: number, haveWaited = false): number {
    if (this.bytesPerSecond === Infinity) return 0;
    const now = performance.now();
    const begin = haveWaited ? this.freeAt : Math.max(now, this.freeAt);
    this.freeAt = begin + (bytes / this.bytesPerSecond) * 1000;
    return this.freeAt - now;
  }
}

/** Forwards what it reads from the socket at the speed of the line, and reads more only after that has arrived. */
export function paced(from: Socket, line: Line, pass: (chunk: Buffer) => void): (chunk: Buffer) => void {
  const next = (rest: Buffer, haveWaited = false): void => {
    while (rest.length > 0) {
      const size = line.bytesPerSecond === Infinity ? rest.length : CHUNK;
      const chunk = rest.subarray(0, size);
      rest = rest.subarray(size);
      const wait = line.take(chunk.length, haveWaited);
      haveWaited = true;
      if (wait >= EXACT_MS) {
        from.pause();
        const later = rest;
        setTimeout(() => {
          pass(chunk);
          next(later, true);
        }, wait);
        return;
      }
      pass(chunk);
    }
    from.resume();
  };
  return next;
}
