import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { EnqueueBufferFullError } from '#lib/errors.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { until, within } from '../support/wait.js';
import { bootWorking } from './support/app.js';

const server = useServer({ args: KEEPING });
const redis = useRedis({ server });
/** How many adds may wait in one process. Further adds are refused at once. */
const BUFFERED = 20_000;

it('holds a bounded number of adds while Redis is away, refuses the others with an error, and stores those it held', async () => {
  const app = await bootWorking({ connection: redis.url, prefix: redis.prefix, enqueueTimeout: '20s' });
  await app.queue.add('job', null, { id: 'before' });
  await until(() => app.runs.has('before'));
  await server.kill9();
  await until(() => app.links.some(({ state, role }) => role === 'command' && state === 'down'));

  const ADDS = 60_000;
  const stored: string[] = [];
  const refused: string[] = [];
  const wrong: unknown[] = [];
  const waiting: Promise<void>[] = [];
  let memory = 0;
  for (let i = 0; i < ADDS; i++) {
    const id = `job-${i}`;
    const added = app.queue.add('job', { text: 'x'.repeat(500) }, { id }).then(
      () => void stored.push(id),
      (error: unknown) => {
        const isTold = error instanceof EnqueueBufferFullError && error.limit === BUFFERED;
        (isTold ? refused : wrong).push(isTold ? id : error);
      },
    );
    if (i < 2 * BUFFERED) waiting.push(added);
    if (i % 1_000 === 999) await turn();
    // Memory must not grow with further adds, since no more of them are held.
    if (i === ADDS / 2) memory = process.memoryUsage().rss;
  }
  expect(refused.length).toBeGreaterThanOrEqual(ADDS - BUFFERED - 2_000);
  expect(process.memoryUsage().rss - memory).toBeLessThan(100 * 2 ** 20);

  await server.restart();
  await within(Promise.all(waiting), { timeout: 15_000, what: 'what was held is decided' });
  expect(wrong).toEqual([]);
  expect(stored.length).toBe(ADDS - refused.length);
  expect(stored.length).toBeGreaterThanOrEqual(BUFFERED);
  await until(() => app.runs.size === stored.length + 1, {
    timeout: 15_000,
    what: () => `${stored.length} stored, ${app.runs.size} run`,
  });
  expect(stored.filter((id) => app.runs.get(id) !== 1)).toEqual([]);
  expect(refused.filter((id) => app.runs.has(id))).toEqual([]);
}, 60_000);
