import { openSync, writeSync } from 'node:fs';

/*
 * The ledger: one file for each process, lines of a letter and words. Written with O_APPEND and a synchronous write, so
 * what is in it has happened, also when the process is killed at its next instruction. Nothing in it comes from Redis.
 *
 * producer  I n k kind    is about to add k jobs: n, n + stride, …  (kind only where the seed does not say it)
 *           A n k         these were accepted
 *           R n k         these were said to be not applied
 *           Q n           accepted as a duplicate, though its id is used once
 * worker    W name t      works under this name from now on
 *           S n run t id  a run begins (id only where the library made it)
 *           E n run       its handler came to its end
 *           C n run       its end, completed or dead, was accepted
 *           T n run       another outcome was accepted: it runs again
 *           X n run       its outcome was refused
 *           V name k t    took the jobs of this worker back to the line
 *           L name t      learnt that this name is not its own any more
 * watcher   c id          the store says: completed
 *           f id reason   dead
 *           s id          stalled
 *           g k           events were missed
 * nemesis   K act from to target…    an act, with its time and whom it met
 *           D file t cause           a process ended
 * all       U text        an unhandled rejection or exception
 */

/** The file of one process. */
export class LedgerWriter {
  private readonly file: number;

  constructor(
    path: string,
    private readonly epoch: number,
  ) {
    this.file = openSync(path, 'a');
  }

  /** Ms since the start of the run, on a clock that all processes share. */
  now(): number {
    return Date.now() - this.epoch;
  }

  /** Writes lines in one call: either all are written or, if the machine is killed, none. */
  write(lines: string): void {
    if (lines !== '') writeSync(this.file, lines);
  }
}
