import { describe, expect, it } from 'vitest';
import { stats } from '#lib/engine/scripts/admin.js';
import type { NameStats } from '#lib/contract/stats.js';
import type { SettledRun } from '#lib/job/outcome.js';
import {
  completed,
  dead,
  job,
  kept,
  LEASE_MS,
  QUEUE,
  released,
  retried,
  snoozed,
  useQueue,
  WORKER,
} from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const reading = (days = 1) => q.engine.admin.stats(QUEUE, days);
const today = async () => (await reading()).days[0]!;
const named = (name: string, run: SettledRun): SettledRun => ({ ...run, name });
/** Of the three counters of a name, those that are not 0. */
const brief = (byName: Readonly<Record<string, NameStats>>) =>
  new Map(
    Object.entries(byName).map(([name, { processed, failed, dead: died }]) => [
      name,
      `${processed} ${failed} ${died}`,
    ]),
  );

/** Holds whatever is settled: the counters of the names add up to the total. */
async function expectSums(): Promise<void> {
  const { byName, processed, failed, dead: died } = await today();
  const sum = (kind: keyof NameStats) => Object.values(byName).reduce((all, one) => all + one[kind], 0);
  expect([sum('processed'), sum('failed'), sum('dead')]).toEqual([processed, failed, died]);
}

it('has every requested day, the newest first, also without counters', async () => {
  const dayOf = (ago: number, now: number) => new Date(now - ago * 86_400_000).toISOString().slice(0, 10);
  const now = await q.now();
  await q.admin.hset(q.keys.stats(dayOf(2, now)), {
    'processed:a': 4,
    'processed:b': 1,
    names: 2,
  });
  await q.admin.hset(q.keys.stats(dayOf(89, now)), { 'failed:a': 2, cancelled: 3 });
  await q.admin.hset(q.keys.stats(dayOf(90, now)), { 'failed:a': 2 });
  const nothing = { processed: 0, failed: 0, dead: 0, cancelled: 0, byName: {} };
  const { days, total } = await changingNothing(q, () => reading(90));
  expect(days).toHaveLength(90);
  expect(days.map(({ date }) => date)).toEqual(days.map((_, ago) => dayOf(ago, now)));
  expect(days[0]).toEqual({ date: dayOf(0, now), ...nothing });
  expect(days[2]).toMatchObject({ processed: 5, failed: 0 });
  expect(brief(days[2]!.byName)).toEqual(
    new Map([
      ['a', '4 0 0'],
      ['b', '1 0 0'],
    ]),
  );
  expect(total).toMatchObject({ processed: 5, failed: 2, dead: 0, cancelled: 3 });
  expect(total.byName['a']).toEqual({ processed: 4, failed: 2, dead: 0 });
  expect((await reading(2)).total).toEqual(nothing);
});

describe('counts by name', () => {
  it('runs of one name', async () => {
    await q.hold('a', 'b', 'c', 'd', 'e', 'f', 'g');
    await q.settle(
      completed('a'),
      kept('b', 1_000),
      retried('c'),
      snoozed('d', 1_000),
      dead('e'),
      dead('f', false),
      released('g'),
      completed('lost'),
      completed('a'),
    );
    const { byName, ...counts } = await today();
    expect(counts).toMatchObject({ processed: 2, failed: 2, dead: 2, cancelled: 0 });
    expect(byName).toEqual({ work: { processed: 2, failed: 2, dead: 2 } });
  });

  it('runs of several names', async () => {
    await q.hold('a', 'b', 'c', 'd', 'e', 'f', 'g');
    await q.settle(
      named('x', completed('a')),
      named('y', completed('b')),
      named('x', kept('c', 1_000)),
      named('y', retried('d')),
      named('x', snoozed('e', 1_000)),
      named('z', dead('f')),
      named('z', released('g')),
    );
    expect(brief((await today()).byName)).toEqual(
      new Map([
        ['x', '2 0 0'],
        ['y', '1 1 0'],
        ['z', '0 1 1'],
      ]),
    );
    await expectSums();
  });

  it.each(['all of its completions held', 'some of them lost'])(
    'the accepted part of a batch, once, %s',
    async (how) => {
      const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
      await q.hold(...ids);
      for (const id of ['e', 'h']) await q.engine.admin.cancel(QUEUE, id, 'why');
      const lost = how === 'some of them lost' ? [named('y', completed('never held'))] : [];
      const answer = await q.settle(
        named('x', completed('a')),
        named('y', completed('b')),
        named('y', completed('b')),
        ...lost,
        named('x', kept('c', 1_000)),
        named('z', kept('c', 1_000)),
        named('x', retried('d')),
        named('z', retried('e')),
        named('z', retried('gone')),
        named('z', dead('f')),
        named('x', dead('d')),
        named('x', dead('h')),
        named('y', released('g')),
        named('y', released('a')),
      );
      expect(answer.lost).toContain('gone');
      expect(brief((await today()).byName)).toEqual(
        new Map([
          ['x', '2 1 0'],
          ['y', '1 0 0'],
          ['z', '0 1 1'],
        ]),
      );
      expect(await today()).toMatchObject({ processed: 3, failed: 2, dead: 1, cancelled: 2 });
      await expectSums();
    },
  );

  it('nothing if all of a batch is lost', async () => {
    await q.exchange();
    await q.settle(named('x', completed('a')), named('y', dead('b')));
    expect(await today()).toMatchObject({ processed: 0, failed: 0, dead: 0, byName: {} });
  });

  it('jobs that died because they lost their worker, and those whose body is gone under no name', async () => {
    await q.hold(job('a', { name: 'x' }), job('b', { name: 'y' }), job('c', { name: 'x' }), 'd');
    await q.admin.hdel(q.key('jobs'), 'd');
    await q.admin.zadd(q.key('workers'), 1, WORKER);
    await q.admin.hset(q.key('worker'), 'doubt', `1 ${(await q.now()) - 1_500}`);
    const call = { worker: WORKER, leaseMs: LEASE_MS, beatMs: 1_000, maxStalls: 0 };
    expect(await q.engine.recover(QUEUE, call)).toMatchObject({ kind: 'recovered' });
    await q.add('e');
    await q.admin.hdel(q.key('jobs'), 'e');
    await q.claim(1, 'w2');
    expect(brief((await today()).byName)).toEqual(
      new Map([
        ['x', '0 0 2'],
        ['y', '0 0 1'],
        ['', '0 0 2'],
      ]),
    );
    await expectSums();
  });

  it.each(['__proto__', 'constructor', 'names', 'processed', 'a:b:c', ' ', '名前 🦆', 'x'.repeat(255), '0'])(
    'the name %s',
    async (name) => {
      await q.hold(job('a', { name }));
      await q.settle(named(name, completed('a')));
      const { byName } = await today();
      expect(Object.getPrototypeOf(byName)).toBeNull();
      expect(Object.keys(byName)).toEqual([name]);
      expect(byName[name]).toEqual({ processed: 1, failed: 0, dead: 0 });
      expect(JSON.parse(JSON.stringify(byName))).toEqual(
        JSON.parse(`{${JSON.stringify(name)}:{"processed":1,"failed":0,"dead":0}}`),
      );
      expect(({} as { processed?: number }).processed).toBeUndefined();
    },
  );
});

describe('of more than 200 names a day', () => {
  const ids = Array.from({ length: 250 }, (_, i) => `j${i}`);
  const all = (settle: (id: string) => SettledRun) => ids.map((id) => named(`n${id}`, settle(id)));

  it('keeps the first 200, and all others under the empty name', async () => {
    for (const settle of [(id: string) => retried(id), dead]) {
      if (settle === dead) await q.claim(250);
      else {
        await q.add(...ids);
        await q.claim(250);
      }
      await q.settle(...all(settle));
    }
    const { byName } = await today();
    expect(Object.keys(byName)).toHaveLength(201);
    expect(byName['nj0']).toEqual({ processed: 0, failed: 2, dead: 1 });
    expect(byName['nj199']).toEqual({ processed: 0, failed: 2, dead: 1 });
    expect(byName['nj200']).toBeUndefined();
    expect(byName['']).toEqual({ processed: 0, failed: 100, dead: 50 });
    expect(await q.admin.hlen(q.key('stats'))).toBe(2 * 201 + 1);
    await expectSums();
  });
});

it('is kept for 90 days from the first count of its day', async () => {
  await q.hold('a');
  await q.settle(completed('a'));
  const ttl = await q.admin.ttl(q.key('stats'));
  expect(ttl).toBeGreaterThan(7_776_000 - 60);
  expect(ttl).toBeLessThanOrEqual(7_776_000);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: stats.keys,
    async prepare() {
      return () => reading();
    },
  });
});
