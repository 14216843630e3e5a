import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../support/cleanup.js';

const SOURCE = fileURLToPath(new URL('fast.c', import.meta.url));

/**
 * Clocks that run faster than the true one, for processes that are started with its `env`. Needs a C compiler, on
 * Linux.
 */
export class FastClock {
  readonly env: Readonly<Record<string, string>>;

  /** @param startMs what they show now, ms since 1970 */
  constructor(
    readonly rate: number,
    startMs: number,
  ) {
    const dir = temporaryFolder();
    const library = join(dir, 'fast.so');
    execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.env = {
      LD_PRELOAD: library,
      FAST_RATE: String(rate),
      FAST_SINCE: String(Date.now()),
      FAST_START: String(startMs),
    };
  }
}
