import { describe, expect, it } from 'vitest';
import type { LimitRule } from '#lib/contract/limit-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, dead, job, QUEUE, retried } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

// Groups that are served by their running jobs.
describe.each(ENGINES)("groups with fairness 'in-flight' on %s", (kind) => {
  const t = useEngine(kind);
  const set = (field: string, rule: LimitRule | null, part: 'code' | 'live' = 'live') =>
    t.engine.limits.set(QUEUE, field, part, rule);
  const inFlight = (more: LimitRule = {}) => set('g', { fairness: 'in-flight', ...more }, 'code');

  /** Adds jobs `<group>.0`, `<group>.1` and so on. */
  const add = (group: string, count: number, from = 0) =>
    t.add(
      ...Array.from({ length: count }, (_, i) =>
        job(`${group}.${from + i}`, { group, body: encodeBody('work', t.now, { group }, '') }),
      ),
    );
  const take = async (want: number, perTurn?: number) =>
    (await t.exchanged({ want, ...(perTurn && { perTurn }) })).claimed.map(({ id }) => id);
  const running = async (group: string) => (await t.engine.limits.group(QUEUE, group)).running;

  it('starts the job of the group with the fewest running jobs', async () => {
    await inFlight();
    await add('slow', 20);
    expect(await take(6)).toHaveLength(6);
    await add('a', 9);
    await add('b', 9);
    expect(await take(6)).toEqual(['a.0', 'b.0', 'a.1', 'b.1', 'a.2', 'b.2']);
    // Short jobs end and start again; the group with long ones has its share already.
    await t.settle(completed('a.0'), completed('b.1'));
    expect(await take(2)).toEqual(['a.3', 'b.3']);
    await t.settle(completed('slow.0'), completed('slow.1'), completed('slow.2'), completed('slow.3'));
    expect(await take(1)).toEqual(['slow.6']);
    expect([await running('slow'), await running('a'), await running('b')]).toEqual([3, 3, 3]);
  });

  it('starts among equals the job of the group that has waited longest', async () => {
    await inFlight();
    for (const group of ['a', 'b', 'c', 'd']) await add(group, 4);
    const order: string[] = [];
    for (let i = 0; i < 8; i += 1) {
      const [id] = await take(1);
      order.push(id!);
      await t.settle(completed(id!));
    }
    expect(order).toEqual(['a.0', 'b.0', 'c.0', 'd.0', 'a.1', 'b.1', 'c.1', 'd.1']);
    await add('new', 1);
    expect(await take(5)).toEqual(['a.2', 'b.2', 'c.2', 'd.2', 'new.0']);
  });

  it('fills up the groups that have fewer running jobs first, in one claim', async () => {
    await inFlight();
    await add('a', 30);
    expect(await take(10)).toHaveLength(10);
    await add('b', 30);
    await add('c', 3);
    await take(14);
    expect([await running('a'), await running('b'), await running('c')]).toEqual([10, 11, 3]);
    await take(9);
    expect([await running('a'), await running('b')]).toEqual([15, 15]);
  });

  it('counts the weight of a group', async () => {
    await inFlight();
    await set('g:big', { weight: 3 });
    await add('big', 40);
    await add('small', 40);
    await take(16);
    expect([await running('big'), await running('small')]).toEqual([12, 4]);
    await t.settle(...[0, 1, 2].map((n) => completed(`big.${n}`)), completed('small.0'));
    for (let i = 0; i < 4; i += 1) await take(1);
    expect([await running('big'), await running('small')]).toEqual([12, 4]);
  });

  it('counts jobs without a group as one group', async () => {
    await inFlight();
    await t.add('x', 'y', 'z');
    await add('a', 4);
    expect(await take(4)).toEqual(['a.0', 'x', 'a.1', 'y']);
    await t.settle(completed('x'), completed('y'));
    expect(await take(1)).toEqual(['z']);
  });

  it('counts a job no more when it waits for a retry or is dead', async () => {
    await inFlight();
    await add('a', 9);
    await add('b', 9);
    expect(await take(8)).toHaveLength(8);
    await t.settle(retried('a.0', { delayMs: 5_000 }), dead('a.1'));
    expect(await running('a')).toBe(2);
    expect(await take(2)).toEqual(['a.4', 'a.5']);
    expect(await take(2)).toEqual(['b.4', 'a.6']);
  });

  it('keeps a limit of concurrency', async () => {
    await inFlight({ concurrency: 2 });
    await set('g:b', { concurrency: false });
    await add('a', 9);
    await add('b', 9);
    await take(9);
    expect([await running('a'), await running('b')]).toEqual([2, 7]);
  });

  it('counts jobs that ran when it was switched on, and none after it was switched off', async () => {
    await add('a', 9);
    expect(await take(3)).toHaveLength(3);
    await add('b', 9);
    await inFlight();
    expect(await running('a')).toBe(3);
    expect(await take(4)).toEqual(['b.0', 'b.1', 'b.2', 'a.3']);
    await set('g', { fairness: 'turns' }, 'code');
    await t.settle(...[0, 1, 2].map((n) => completed(`a.${n}`)));
    expect(await take(4)).toEqual(expect.arrayContaining(['a.4', 'a.5', 'b.3', 'b.4']));
  });

  it('gives a batch handler whole batches of the group with the fewest running jobs', async () => {
    await inFlight();
    await add('a', 9);
    await take(2);
    await add('b', 9);
    expect(await take(6, 3)).toEqual(['b.0', 'b.1', 'b.2', 'a.2', 'a.3', 'a.4']);
  });

  it('says that claimed jobs must start at once', async () => {
    await inFlight();
    await add('a', 1);
    expect(await t.exchanged({ want: 0 })).toMatchObject({ isLimited: true, startsAtOnce: true });
  });

  it('leaves nothing when all jobs have ended', async () => {
    await inFlight();
    await add('a', 2);
    await add('b', 2);
    await t.settle(...(await take(9)).map((id) => completed(id)));
    expect(await take(9)).toEqual([]);
    expect((await t.engine.limits.overview(QUEUE)).groups).toEqual({ ready: 0, resting: 0, stopped: 0 });
    expect(await running('a')).toBe(0);
  });
});
