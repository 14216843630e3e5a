import { expect, it } from 'vitest';
import { RedisUpkeep } from '#lib/engine/redis-upkeep.js';

it('cleans more jobs than a function may have arguments', async () => {
  const all = 200_000;
  let left = all;
  const store = {
    keysOf: () => ({ fixed: {} }),
    run: () => {
      const ids = Array.from({ length: Math.min(left, 100) }, (_, i) => `j${left - i}`);
      left -= ids.length;
      return Promise.resolve({ now: 1, next: left > 0 ? { at: '1', id: ids.at(-1) } : null, ids });
    },
  };
  const settings = { limitsOf: () => ({ maxEvents: 0 }) };
  const upkeep = new RedisUpkeep('shop', store as never, settings as never, () => false);
  const limit = Number.MAX_SAFE_INTEGER;
  const { removed } = await upkeep.clean('q', { state: 'delayed', olderThanMs: 0, limit });
  expect(removed.length).toBe(all);
});
