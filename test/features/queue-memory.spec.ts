import { expect, it } from 'vitest';
import { bootDashboard } from '../support/dashboard.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';

// A server of its own, because others would change its memory, and a test takes a right away.
const server = useServer();
const redis = useRedis({ server, refusals: true });

it('the memory of a queue is estimated from samples, within a quarter of what Redis reports', async () => {
  const { queue, api } = await bootDashboard(redis);
  const used = async () => {
    const info = await queue['engine'].admin.serverInfo('work');
    return Number(/^used_memory_dataset:(\d+)/m.exec(info!)![1]);
  };
  const estimate = async (): Promise<number> => (await api('GET', 'queues/work/memory')).body.bytes;
  const before = await used();
  expect(await estimate()).toBeLessThan(20_000);
  for (let at = 0; at < 20; at += 1)
    await queue.addBulk(
      Array.from({ length: 1_000 }, (_, i) => ({
        name: 'x',
        data: { text: 'a'.repeat(i) },
        options: { id: `job-${at}-${i}` },
      })),
    );
  const real = (await used()) - before;
  expect(real).toBeGreaterThan(10_000_000);
  const found = await estimate();
  expect(found / real).toBeGreaterThan(0.75);
  expect(found / real).toBeLessThan(1.25);
});

it('there is no memory of a queue to report without Redis, or if Redis refuses the command', async () => {
  const memory = await bootDashboard({ url: 'memory', prefix: 'p' });
  expect((await memory.api('GET', 'queues/work/memory')).body).toEqual({ bytes: null });
  const { api } = await bootDashboard(redis);
  expect((await api('GET', 'queues/work/memory')).body.bytes).toBeGreaterThan(0);
  await redis.admin.call('ACL', 'SETUSER', new URL(redis.url).username, '-memory|usage');
  expect((await api('GET', 'queues/work/memory')).body).toEqual({ bytes: null });
});
