import { expect, it, vi } from 'vitest';
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

it('measures the jobs that die while others are measured', async () => {
  vi.useFakeTimers();
  try {
    const answers: ((step: object) => void)[] = [];
    const store = {
      keysOf: () => ({ fixed: {} }),
      run: () => new Promise((resolve) => answers.push(resolve)),
    };
    const settings = { limitsOf: () => ({ deadMaxBytes: 16 * 1_048_576 }) };
    const upkeep = new RedisUpkeep('shop', store as never, settings as never, () => false);
    upkeep.died('q', 1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(answers).toHaveLength(1);
    upkeep.died('q', 1);
    answers[0]!({ passed: 1, bytes: 100, isEnd: true });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(answers).toHaveLength(2);
  } finally {
    vi.useRealTimers();
  }
});
