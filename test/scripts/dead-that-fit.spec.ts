import { expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { deadThatFit } from '#lib/engine/scripts/upkeep.js';
import { dead, job, useQueue } from './support.js';
import { changingNothing } from './unchanged.js';

const q = useQueue();
const SIZE = 10_000;

/** One look at about `most` bytes of bodies. */
function fitting(most: number, { passed = 0, bytes = 0, examine = 1_000 } = {}) {
  const { store } = q.engine as unknown as { store: RedisStore };
  return changingNothing(q, () => store.run(deadThatFit, q.keys.fixed, { passed, bytes, most, examine }));
}

async function buryLarge(...ids: string[]): Promise<void> {
  await q.add(...ids.map((id) => job(id, { body: 'x'.repeat(SIZE) })));
  await q.claim();
  await q.settle(...ids.map((id) => dead(id)));
}

it('without dead jobs returns none', async () => {
  expect(await fitting(1)).toEqual({ passed: 0, bytes: 0, isEnd: true });
});

it('returns how many fit, those that died last first, with their errors', async () => {
  await buryLarge('a', 'b', 'c');
  const all = await fitting(10 * SIZE);
  expect(all).toMatchObject({ passed: 3, isEnd: true });
  expect(all.bytes).toBeGreaterThan(3 * SIZE + 100);
  expect(all.bytes).toBeLessThan(4 * SIZE);
  expect(await fitting(all.bytes)).toEqual(all);
  expect(await fitting(all.bytes - 1)).toEqual({ ...all, passed: 2 });
});

it('returns that the last one fits, however large it is', async () => {
  await buryLarge('a', 'b');
  expect(await fitting(1)).toMatchObject({ passed: 1, isEnd: true });
});

it('continues after those that it has measured', async () => {
  await buryLarge('a', 'b', 'c');
  const first = await fitting(10 * SIZE, { examine: 2 });
  expect(first).toMatchObject({ passed: 2, isEnd: false });
  expect(await fitting(10 * SIZE, { ...first, examine: 2 })).toMatchObject({ passed: 3, isEnd: true });
});
