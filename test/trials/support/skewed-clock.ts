import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../support/cleanup.js';

const SOURCE = fileURLToPath(new URL('skew.c', import.meta.url));

/**
 * A wall clock that is set wrong on command, for processes that are started with its `env`. Needs a C compiler, on
 * Linux.
 */
export class SkewedClock {
  readonly env: Readonly<Record<string, string>>;
  private readonly file: string;

  constructor(offsetMs = 0) {
    const dir = temporaryFolder();
    const library = join(dir, 'skew.so');
    execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.file = join(dir, 'offset');
    this.set(offsetMs);
    this.env = { LD_PRELOAD: library, SKEW_FILE: this.file };
  }

  /** From now on the clock is this many ms ahead of the true one, or behind it. */
  set(offsetMs: number): void {
    writeFileSync(this.file, String(offsetMs));
  }
}
