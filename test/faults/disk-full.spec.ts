import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { RedisRefusedError, RedisUnavailableError } from '#lib/errors.js';
import { startRedis, type RunningRedis } from '../../tools/redis.mjs';
import { findServer } from '../../tools/redis/binary.mjs';
import { atEnd, temporaryFolder } from '../support/cleanup.js';
import { latch, until } from '../support/wait.js';
import { bootWorking, drained } from './support/app.js';
import { onceEach } from './support/ledger.js';

/** The files of the process may grow no further. A write then fails as on a full disk. */
function limitFiles(pid: number, bytes: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}

/** Size in bytes of the largest file that the server writes. */
function largestFile(dir: string): number {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Math.max(
    ...files
      .filter(({ name }) => name.endsWith('.aof'))
      .map(({ name, parentPath }) => statSync(join(parentPath, name)).size),
  );
}

it('claims nothing while the disk is full, keeps finished outcomes, and settles them once there is room', async () => {
  // Without the trap the kernel would end the server. With it the server refuses writes.
  const server = await startWrapped("trap '' XFSZ", ['--appendonly', 'yes', '--appendfsync', 'no']);
  const admin = new Redis(server.url);
  admin.on('error', () => undefined);
  atEnd(() => admin.disconnect());
  const gate = latch('the gate');
  const app = await bootWorking({ connection: server.url, enqueueTimeout: '500ms' }, () => gate.promise);
  const held = Array.from({ length: 10 }, (_, i) => `held-${i}`);
  const waiting = Array.from({ length: 30 }, (_, i) => `waiting-${i}`);
  await app.queue.addBulk([...held, ...waiting].map((id) => ({ name: 'job', data: null, options: { id } })));
  await until(() => app.runs.size === held.length);

  limitFiles(server.pid!, largestFile(server.dir!) + 100);
  atEnd(() => server.pid !== undefined && limitFiles(server.pid, 'unlimited'));
  await until(
    () =>
      admin.set('filler', 'x'.repeat(200)).then(
        () => false,
        (error: Error) => error.message.startsWith('MISCONF'),
      ),
    { what: 'Redis finds its disk full' },
  );
  const refused = await app.queue.add('job', null, { id: 'refused' }).catch((error: unknown) => error);
  expect([RedisRefusedError, RedisUnavailableError].some((kind) => refused instanceof kind)).toBe(true);
  expect(refused).toMatchObject({
    applied: 'no',
    reply: 'MISCONF',
    message: expect.stringContaining('disk'),
  });
  gate.open();
  const fullUntil = performance.now() + 1_500;
  await until(() => performance.now() > fullUntil);
  // They have ended without a confirmation, and no other job has begun.
  expect(app.runs).toEqual(onceEach(held));

  limitFiles(server.pid!, 'unlimited');
  await drained(app);
  expect(app.runs).toEqual(onceEach([...held, ...waiting]));
  // The file is whole. A server that starts from it has nothing to repair.
  await server.restart();
  await drained(app);
  expect(app.runs).toEqual(onceEach([...held, ...waiting]));
});

/**
 * A server that starts after some lines of shell: `trap '' XFSZ`, `export LD_PRELOAD=…`. The end of the test stops
 * it.
 */
async function startWrapped(lines: string, args: readonly string[]): Promise<RunningRedis> {
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
