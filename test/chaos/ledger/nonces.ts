/** The known facts about a nonce, as bits. */
export const INTENDED = 1;
export const ACCEPTED = 2;
export const REFUSED = 4;
export const STARTED = 8;
export const DEAD = 16;
/** Still in the queue, in a place from which it will run. */
export const QUEUED = 32;
/** Added, although the answer was that its id is taken. */
export const DUPLICATE = 64;

/** A few bytes per nonce, for any number of nonces. */
export class Nonces {
  size = 0;
  flags = new Uint8Array(1 << 16);
  /** How often its handler returned. */
  ends = new Uint8Array(1 << 16);
  /** How often a worker was told that its end is accepted. */
  accepted = new Uint8Array(1 << 16);
  /** How often the store reported its end. */
  told = new Uint8Array(1 << 16);

  mark(n: number, flag: number): void {
    this.reach(n);
    this.flags[n]! |= flag;
  }

  is(n: number, flag: number): boolean {
    return (this.flags[n]! & flag) !== 0;
  }

  count(column: 'ends' | 'accepted' | 'told', n: number): void {
    this.reach(n);
    // Any number above 255 is wrong anyway.
    if (this[column][n]! < 255) this[column][n]! += 1;
  }

  private reach(n: number): void {
    if (n >= this.size) this.size = n + 1;
    if (n < this.flags.length) return;
    const length = Math.max(this.flags.length * 2, n + 1);
    for (const column of ['flags', 'ends', 'accepted', 'told'] as const) {
      const longer = new Uint8Array(length);
      longer.set(this[column]);
      this[column] = longer;
    }
  }
}
