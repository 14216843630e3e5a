import { expect, it } from 'vitest';
import { setImmediate as nextImmediate } from 'node:timers/promises';
import { useRedis } from '../support/redis.js';
import { bootWorking } from './support/app.js';

const redis = useRedis();
/** Longer than a call may take. */
const BLOCK_MS = 3_000;

it('keeps its connections through a handler that blocks the event loop, whatever was on its way', async () => {
  const root = { connection: redis.url, prefix: redis.prefix };
  const app = await bootWorking(root, async () => {
    // From here timers come before sockets are read again.
    await nextImmediate();
    // Sent at once, and answered while nobody can read it.
    const counts = app.engine.admin.counts('work');
    const end = performance.now() + BLOCK_MS;
    while (performance.now() < end);
    return counts;
  });
  const counts = await app.queue.addAndWait('blocks', 1, { retention: '1m', waitTimeout: '20s' });
  expect(counts).toMatchObject({ active: 1 });
  expect(app.runs.size).toBe(1);
  expect(app.links.filter(({ state, error }) => state === 'down' || error)).toEqual([]);
});
