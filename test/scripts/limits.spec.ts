import { describe, expect, it } from 'vitest';
import { limits } from '#lib/engine/scripts/limits.js';
import { job, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

it('of a queue without limits returns that there are none', async () => {
  expect(await changingNothing(q, () => q.engine.limits.list(QUEUE))).toEqual([
    {
      field: 'q',
      code: null,
      live: null,
      rule: {},
      blockedForMs: 0,
      left: null,
      nextInMs: 0,
      retryDelayMs: 0,
      waiting: 0,
      running: 0,
      breaker: null,
      holder: null,
      isStopped: false,
      users: [],
    },
  ]);
});

it('returns the limits of all names, however many groups have limits of their own', async () => {
  const names = Array.from({ length: 20 }, (_, i) => `n:${i}`);
  for (const name of names) await q.engine.limits.set(QUEUE, name, 'code', { concurrency: 1 });
  const rules = Array.from({ length: 30_000 }, (_, i) => [`g:${i}`, '{"live":{"weight":2}}']);
  await q.admin.hset(q.key('limits'), ...rules.flat());
  await q.add(job('a', { group: 'a' }), job('a2', { group: 'a' }), job('b', { name: '1' }), job('c'));
  await q.claim(1);
  const { limits, groups } = await changingNothing(q, () => q.engine.limits.overview(QUEUE));
  expect(limits.map(({ field }) => field).toSorted()).toEqual(['q', ...names].toSorted());
  expect(groups).toEqual({ ready: 1, resting: 0, stopped: 0 });
});

it('returns groups page by page', async () => {
  const groups = Array.from({ length: 1_000 }, (_, i) => `tenant ${i}`);
  await q.add(...groups.map((group) => job(`of ${group}`, { group })));
  await q.add(...groups.slice(0, 500).map((group) => job(`more of ${group}`, { group })));
  const seen: string[] = [];
  let pages = 0;
  for (let cursor: string | null = '0'; cursor !== null; pages++) {
    const page: Awaited<ReturnType<typeof q.engine.limits.groups>> = await changingNothing(q, () =>
      q.engine.limits.groups(QUEUE, cursor!, 100),
    );
    seen.push(...page.groups.map(({ field }) => field.slice(2)));
    for (const { field, waiting } of page.groups)
      expect(waiting).toBe(groups.indexOf(field.slice(2)) < 500 ? 2 : 1);
    cursor = page.next;
  }
  expect(seen.toSorted()).toEqual(groups.toSorted());
  expect(pages).toBeGreaterThan(2);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: limits.keys,
    // Only for those of all queues, and for the number of groups.
    except: ['shares', 'ready', 'resting'],
    hasSlots: true,
    prepare: async () => {
      await q.add(job('a', { group: 'g' }));
      await q.engine.limits.set(QUEUE, 'g', 'live', { rate: { max: 1, per: 9, window: 'fixed', burst: 1 } });
      await q.admin.del(q.key('ready'));
      return () => q.engine.limits.group(QUEUE, 'g');
    },
  });
});
