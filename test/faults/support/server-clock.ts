import { execFileSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MissingProgramError, aptInstall, findOnPath } from '../../../tools/programs.mjs';
import type { RunningRedis } from '../../../tools/redis.mjs';
import { atEnd } from '../../support/cleanup.js';
import { startWrapped } from './wrapped.js';

const SOURCE = fileURLToPath(new URL('clock.c', import.meta.url));

export interface ServerWithClock {
  readonly server: RunningRedis;
  /** From now on the wall clock of the server is so many ms ahead of ours, or behind it. */
  step(ms: number): void;
}

/** A server whose clock can be set, without a change to the clock of this machine; stopped at the end of the test. */
export async function startServerWithClock(args: readonly string[] = []): Promise<ServerWithClock> {
  const dir = mkdtempSync(join(tmpdir(), 'godwit-clock-'));
  atEnd(() => rmSync(dir, { recursive: true, force: true }));
  const library = join(dir, 'clock.so');
  const file = join(dir, 'offset');
  execFileSync(compiler(), ['-shared', '-fPIC', '-O1', '-o', library, SOURCE]);
  const step = (ms: number) => {
    // Renamed into place, or the server might read an empty file.
    writeFileSync(`${file}.new`, String(ms));
    renameSync(`${file}.new`, file);
  };
  step(0);
  const server = await startWrapped(`export CLOCK_FILE='${file}' LD_PRELOAD='${library}'`, args);
  return { server, step };
}

function compiler(): string {
  const find = () => findOnPath('cc') ?? findOnPath('gcc');
  const found = find() ?? (aptInstall('A C compiler', ['build-essential']) ? find() : undefined);
  if (found) return found;
  throw new MissingProgramError('a C compiler is needed to give a server a clock of its own; install gcc');
}
