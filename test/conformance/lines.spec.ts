import { describe, expect, it } from 'vitest';
import type { LimitRule } from '#lib/contract/limit-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, QUEUE } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

// When groups become ready, rest, wait for a slot, and are served. `limits.spec.ts` has the rules of the limits.
describe.each(ENGINES)('groups on %s', (kind) => {
  const t = useEngine(kind);
  const set = (field: string, rule: LimitRule | null, part: 'code' | 'live' = 'live') =>
    t.engine.limits.set(QUEUE, field, part, rule);

  /** A job with an id like `tenant.3`, of that group. */
  const grouped = (id: string, more: { priority?: number } = {}) => {
    const group = id.split('.')[0]!;
    const body = encodeBody('job', t.now, { group, ...more }, '');
    return { id, name: 'job', hasOwnId: true, group, ...more, body };
  };
  const some = (group: string, count: number) =>
    Array.from({ length: count }, (_, i) => grouped(`${group}.${i}`));

  /** The claimed jobs, and when the next claim can succeed. */
  async function take(want: number) {
    const { claimed, supply } = await t.exchanged({ want });
    return { ids: claimed.map(({ id }) => id), supply };
  }

  it('count those of their jobs that run already', async () => {
    await set('g', { concurrency: 3 });
    await t.add(...some('a', 6), ...some('b', 6));
    expect((await take(6)).ids).toEqual(['a.0', 'b.0', 'a.1', 'b.1', 'a.2', 'b.2']);
    await t.settle(completed('a.0'), completed('b.0'), completed('b.1'));
    expect((await take(9)).ids).toEqual(['a.3', 'b.3', 'b.4']);
    await t.settle(completed('a.1'));
    expect((await take(1)).ids).toEqual(['a.4']);
    expect((await take(9)).ids).toEqual([]);
  });

  it('that are new begin at the turn of the others', async () => {
    await t.add(...some('a', 9));
    for (let i = 0; i < 4; i++) await take(1);
    await t.add(...some('b', 9));
    const ids = [];
    for (let i = 0; i < 6; i++) ids.push((await take(1)).ids[0]!.charAt(0));
    expect(ids.filter((group) => group === 'a').length).toBeGreaterThanOrEqual(2);
    expect(ids.filter((group) => group === 'b').length).toBeGreaterThanOrEqual(2);
  });

  it.each<[string, LimitRule]>([
    ['has jobs left', {}],
    ['has all its slots', { concurrency: 8 }],
  ])('that are new do not wait for turns that a line had alone, if it %s', async (_, rule) => {
    await set('g', rule);
    await t.add(...some('a', 30));
    const alone = (await take(8)).ids;
    expect(alone).toHaveLength(8);
    await t.add(...some('b', 9), ...some('c', 9));
    await t.settle(...alone.map((id) => completed(id)));
    const ids = [];
    for (let i = 0; i < 9; i++) ids.push((await take(1)).ids[0]!.charAt(0));
    expect(ids.toSorted().join('')).toBe('aaabbbccc');
  });

  it('go on when they get a job while their last one runs', async () => {
    await set('g', { concurrency: 2 });
    await t.add(...some('a', 1), ...some('b', 1));
    expect((await take(9)).ids).toEqual(['a.0', 'b.0']);
    await t.add(grouped('a.1'), grouped('b.1', { priority: 2 }));
    expect((await take(9)).ids).toEqual(['a.1', 'b.1']);
  });

  it('wait for nothing once their rate is gone and they are empty', async () => {
    await set('g', { rate: { max: 1, per: 1_000, window: 'fixed', burst: 1 } });
    await t.add(...some('a', 2));
    expect(await take(9)).toEqual({ ids: ['a.0'], supply: { limitedForMs: 1_000 } });
    await set('g', { weight: 1, rate: false });
    await t.add(grouped('a.2'));
    expect((await take(9)).ids).toEqual(['a.1', 'a.2']);
    expect((await take(9)).supply).toBe('empty');
  });

  it('wait for nothing once their rule was changed while they rested', async () => {
    await set('g:a', { rate: { max: 1, per: 60_000, window: 'fixed', burst: 1 } });
    await t.add(...some('a', 2));
    expect(await take(9)).toEqual({ ids: ['a.0'], supply: { limitedForMs: 60_000 } });
    await set('g:a', { concurrency: 5, rate: false });
    expect(await take(9)).toEqual({ ids: ['a.1'], supply: 'empty' });
  });

  it('wait for nothing once they have rested and have room', async () => {
    await set('g', { rate: { max: 2, per: 1_000, window: 'fixed', burst: 2 }, concurrency: 5 });
    await t.add(...some('a', 3));
    expect(await take(9)).toEqual({ ids: ['a.0', 'a.1'], supply: { limitedForMs: 1_000 } });
    await t.advance(1_000);
    expect(await take(9)).toEqual({ ids: ['a.2'], supply: 'empty' });
  });

  it('keep their turns and strict order while many others are ready', async () => {
    await set('g', { order: 'strict' });
    const groups = Array.from({ length: 12 }, (_, i) => `g${i + 10}`);
    const idsOf = (n: number) => groups.map((group) => `${group}.${n}`);
    await t.add(...[0, 1].flatMap(idsOf).map((id) => grouped(id)));
    const started: string[] = [];
    for (let i = 0; i < 6; i += 1) started.push(...(await take(2)).ids);
    expect(started).toEqual(idsOf(0));
    expect(await take(2)).toEqual({ ids: [], supply: 'empty' });
    await t.settle(completed('g12.0'));
    expect((await take(2)).ids).toEqual(['g12.1']);
    const others = (n: number) => idsOf(n).filter((id) => !id.startsWith('g12'));
    await t.settle(...others(0).map(completed));
    expect((await take(20)).ids).toEqual(others(1));
  });

  // 1,000 are as many as one claim looks at.
  it.each<[number, object[]]>([
    [1_000, []],
    [1_002, [{ ids: [], supply: { limitedForMs: 1 } }]],
  ])('are found after many groups without jobs, as the last of %d', async (count, before) => {
    await set('g', { order: 'strict' });
    const ids = [...Array.from({ length: count - 1 }, (_, i) => `g${i}.0`), 'last.0'];
    await t.add(...[...ids, 'last.1'].map((id) => grouped(id)));
    for (let i = 0; i < count; i += 100) expect((await take(100)).ids).toEqual(ids.slice(i, i + 100));
    await t.settle(...ids.map(completed));
    for (const answer of before) expect(await take(500)).toEqual(answer);
    expect(await take(500)).toEqual({ ids: ['last.1'], supply: 'empty' });
  });

  it('share a claim that is larger than the number of groups', async () => {
    await t.add(...some('a', 9), ...some('b', 2), ...some('c', 9));
    const { ids } = await take(12);
    const of = (group: string) => ids.filter((id) => id.startsWith(group)).length;
    expect([of('a'), of('b'), of('c')]).toEqual([5, 2, 5]);
  });

  it('give no more jobs than asked for, also if each has room for one more', async () => {
    await set('g', { concurrency: 2 });
    await t.add(...some('a', 2), ...some('b', 2));
    expect((await take(3)).ids).toEqual(['a.0', 'b.0', 'a.1']);
  });

  it('give one job each before any gives a second one, in the order in which jobs start', async () => {
    const groups = Array.from({ length: 300 }, (_, i) => `g${100 + i}`);
    await t.add(...groups.flatMap((group) => some(group, 3)));
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      ids.push(...(await take(500)).ids);
      expect(ids).toHaveLength(250 * (i + 1));
    }
    for (const n of [0, 1])
      expect(ids.slice(300 * n, 300 * n + 300).toSorted()).toEqual(groups.map((group) => `${group}.${n}`));
  });

  it('mix their jobs in one claim, each by its weight', async () => {
    await set('g:vip', { weight: 2 });
    await t.add(...some('vip', 6), ...some('a', 6), ...some('b', 1));
    const { ids } = await take(10);
    const rounds = [
      ['vip', 'vip', 'a', 'b'],
      ['vip', 'vip', 'a'],
      ['vip', 'vip', 'a'],
    ].flat();
    expect(ids.map((id) => id.split('.')[0])).toEqual(rounds);
  });

  it('get as many jobs each in one claim, except the last round', async () => {
    const groups = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    await t.add(...groups.flatMap((group) => some(group, 9)));
    const { ids } = await take(17);
    const counts = groups.map((group) => ids.filter((id) => id.startsWith(group)).length);
    expect(counts).toEqual([3, 3, 3, 2, 2, 2, 2]);
  });

  it('with a low weight wait for the rounds of others in one claim', async () => {
    await set('g:slow', { weight: 0.5 });
    await t.add(...some('slow', 4), ...some('a', 9));
    const { ids } = await take(6);
    expect(ids.map((id) => id.split('.')[0])).toEqual(['slow', 'a', 'a', 'slow', 'a', 'a']);
  });

  it('use all of their concurrency in one claim, also after another group and across priorities', async () => {
    await set('g', { concurrency: 3 });
    const priorities = [0, 1, 2, 2].map((priority, i) => grouped(`a.${i}`, { priority }));
    await t.add(...priorities, grouped('b.0'));
    expect((await take(4)).ids).toEqual(['a.0', 'b.0', 'a.1', 'a.2']);
  });

  it('let others catch up within a claim, unless they are ahead by less than their share of it', async () => {
    await t.add(...some('b', 9));
    // One job with this weight counts as five turns.
    await set('g:b', { weight: 0.2 });
    expect((await take(1)).ids).toEqual(['b.0']);
    await set('g:b', null);
    await t.add(...some('a', 9));
    expect((await take(7)).ids).toEqual(['a.0', 'a.1', 'a.2', 'a.3', 'a.4', 'a.5', 'b.1']);
    expect((await take(1)).ids).toEqual(['b.2']);
    expect((await take(4)).ids).toEqual(['a.6', 'a.7', 'b.3', 'b.4']);
  });

  it('let a job with lifo start before the others of its line, except with aging', async () => {
    const plain = (id: string, name = 'job') => ({
      id,
      name,
      hasOwnId: true,
      body: encodeBody(name, t.now, {}, ''),
    });
    await set('n:x', { concurrency: 1 });
    await t.add(plain('a'), plain('b'), plain('x.1', 'x'), plain('x.2', 'x'));
    expect((await take(2)).ids).toEqual(['a', 'x.1']);
    await t.add({ ...plain('first'), lifo: true }, plain('c'), { ...plain('x.first', 'x'), lifo: true });
    await t.add({ ...plain('very first'), lifo: true });
    expect((await take(3)).ids).toEqual(['very first', 'first', 'b']);
    await t.settle(completed('x.1'));
    expect((await take(9)).ids).toEqual(expect.arrayContaining(['x.first', 'c']));
    await set('q', { aging: { every: 1_000, by: 1 } }, 'code');
    await t.add(plain('d'), plain('e'));
    expect((await take(1)).ids).toEqual(['d']);
    await t.add({ ...plain('f'), lifo: true });
    expect((await take(1)).ids).toEqual(['e']);
    // Also if no claim has put the others into their lines yet.
    await t.add(plain('g'));
    await t.add({ ...plain('h'), lifo: true });
    expect((await take(9)).ids).toEqual(['f', 'g', 'h']);
  });

  it('let the last of several jobs with lifo start first, also in a new queue', async () => {
    await set('n:x', { concurrency: 9 });
    await t.add(
      ...['a', 'b', 'c', 'd'].map((id) => ({ id, name: 'x', hasOwnId: true, lifo: true, body: 'x\n' })),
    );
    expect((await take(9)).ids).toEqual(['d', 'c', 'b', 'a']);
  });

  it('are no longer ready after their last job, however many others are', async () => {
    await t.add(...['a.0', 'b.0', 'c.0', 'd.0', 'e.0'].map((id) => grouped(id)));
    expect((await take(1)).ids).toEqual(['a.0']);
    expect((await t.engine.limits.overview(QUEUE)).groups).toEqual({ ready: 4, resting: 0, stopped: 0 });
  });

  it('that are empty are removed as soon as their rate counts no start any more', async () => {
    await set('g', { rate: { max: 1, per: 1_000, window: 'fixed', burst: 1 } });
    await t.add(...some('a', 1));
    expect(await take(9)).toEqual({ ids: ['a.0'], supply: { limitedForMs: 1_000 } });
    await t.advance(1_000);
    expect(await take(9)).toEqual({ ids: [], supply: 'empty' });
  });

  it('each keep their own turn if they wake together', async () => {
    await set('g', { concurrency: 1 }, 'code');
    await set('g:a', { weight: 0.25 });
    await t.add(...some('a', 2), ...some('b', 2));
    expect((await take(9)).ids).toEqual(['a.0', 'b.0']);
    await t.settle(completed('a.0'), completed('b.0'));
    expect((await take(1)).ids).toEqual(['b.1']);
  });
});
