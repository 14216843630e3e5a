import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRedis, type RunningRedis } from '../../../tools/redis.mjs';
import { findServer } from '../../../tools/redis/binary.mjs';
import { atEnd, temporaryFolder } from '../../support/cleanup.js';

/**
 * A server that starts after some lines of shell: `trap '' XFSZ`, `export LD_PRELOAD=…`. The end of the test stops
 * it.
 */
export async function startWrapped(lines: string, args: readonly string[]): Promise<RunningRedis> {
  const dir = temporaryFolder();
  const program = join(dir, 'server');
  writeFileSync(program, `#!/bin/sh\n${lines}\nexec '${findServer({ forTests: true })}' "$@"\n`);
  chmodSync(program, 0o755);
  const before = process.env['GODWIT_TEST_REDIS_SERVER'];
  process.env['GODWIT_TEST_REDIS_SERVER'] = program;
  try {
    const server = await startRedis({ private: true, args });
    atEnd(() => server.stop());
    return server;
  } finally {
    if (before === undefined) delete process.env['GODWIT_TEST_REDIS_SERVER'];
    else process.env['GODWIT_TEST_REDIS_SERVER'] = before;
  }
}
