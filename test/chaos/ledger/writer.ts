import { openSync, writeSync } from 'node:fs';

/** One process' own file. */
export class LedgerWriter {
  private readonly file: number;

  constructor(
    path: string,
    private readonly epoch: number,
  ) {
    this.file = openSync(path, 'a');
  }

  /** Ms since the beginning of the run, by the clock that all its processes share. */
  now(): number {
    return Date.now() - this.epoch;
  }

  /** Lines, each with its end. One write: either all of it happened or, at the kill of a machine only, none. */
  write(lines: string): void {
    if (lines !== '') writeSync(this.file, lines);
  }
}
