import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { useRedis } from '../../../test/support/redis.js';
import { useServer } from '../../../test/support/server.js';
import { newSide, oldQueue } from './support/rig.js';

const server = useServer();
const redis = useRedis({ server, rights: 'all' });
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const TIMEOUT = 180_000;

async function move(...args: string[]): Promise<{ code: number; text: string }> {
  const program = ['--import', './tools/typescript.mjs', 'sample/03-from-bullmq/moving/main.ts', ...args];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, program, { cwd: ROOT, timeout: TIMEOUT });
    return { code: 0, text: stdout };
  } catch (error) {
    const { code, stderr } = error as { code: number; stderr: string };
    return { code, text: stderr };
  }
}

test('the program says what it would move, moves it, and says what stays', { timeout: TIMEOUT }, async () => {
  const from = oldQueue(6, server.url);
  await from.addBulk(Array.from({ length: 3 }, () => ({ name: 'transcode', data: {} })));
  await from.upsertJobScheduler('daily', { pattern: '0 7 * * *' }, { name: 'report' });
  const { audio } = await newSide(redis, 'producer');
  const args = ['audio', '--redis', server.url, '--prefix', redis.prefix];
  expect(await move(...args, '--dry-run')).toEqual({
    code: 0,
    text: expect.stringMatching(
      /^3 can be moved, 1 left\n {2}repeat:daily:\d+: it belongs to a job scheduler\n/m,
    ),
  });
  expect(await audio.counts()).toMatchObject({ waiting: 0 });
  expect(await move(...args)).toEqual({
    code: 0,
    text: expect.stringMatching(
      /^3 moved, 1 left\n.*\nin the old queue: 0 running, 0 waiting for children, 0 failed\n$/ms,
    ),
  });
  expect(await audio.counts()).toMatchObject({ waiting: 3 });
});

test('without a queue, or with a state there is not, it tells its usage', { timeout: TIMEOUT }, async () => {
  expect(await move()).toEqual({ code: 2, text: expect.stringContaining('main.js <queue>') });
  expect(await move('audio', '--states', 'done')).toEqual({
    code: 2,
    text: expect.stringContaining('main.js <queue>'),
  });
});
