import { describe, expect, it } from 'vitest';
import type { ShareCall } from '#lib/contract/limit-verbs.js';
import type { LimitRule } from '#lib/job/limit-rule.js';
import { RULES } from '#lib/job/rules.js';
import { LEASE_MS, QUEUE } from '../scripts/support.js';
import { ENGINES, OTHERS, useEngine } from './support.js';

const [OTHER, THIRD] = OTHERS;

describe.each(ENGINES)('limits that queues share on %s', (kind) => {
  const t = useEngine(kind);
  const set = (name: string, rule: LimitRule | null, part: 'code' | 'live' = 'code') =>
    t.engine.limits.set(QUEUE, `s:${name}`, part, rule);
  const rate = (max: number, window: 'sliding' | 'fixed' | 'bucket' = 'sliding') =>
    ({ rate: { max, per: 1_000, window, burst: max } }) as const;
  const ask = (call: Partial<ShareCall>, queue: string = QUEUE) =>
    t.engine.limits.share(queue, {
      limits: ['api'],
      worker: 'w1',
      seq: 1,
      running: 0,
      want: 0,
      kept: null,
      leaseMs: LEASE_MS,
      ...call,
    });
  const nothing = { grantedAt: expect.any(Number), opensInMs: null, woken: [], isLost: false };

  it.each(['sliding', 'fixed', 'bucket'] as const)(
    'grant no more than a %s rate lets all queues start, and take back what was not needed',
    async (window) => {
      await set('api', rate(5, window));
      expect(await ask({ want: 3 })).toEqual({ ...nothing, granted: 3 });
      const second = await ask({ want: 9 }, OTHER);
      expect(second).toMatchObject({ granted: 2 });
      expect(second.opensInMs).toBeGreaterThan(0);
      expect(await ask({ want: 1, seq: 2 })).toMatchObject({ granted: 0 });
      await ask({ seq: 1, kept: 1 }, OTHER);
      expect(await ask({ want: 9, seq: 3 })).toMatchObject({ granted: 1 });
      await t.advance(1_010);
      expect(await ask({ want: 9, seq: 4 })).toMatchObject({ granted: 5 });
    },
  );

  it('grant no more in a window although starts were granted in it and not used', async () => {
    await set('api', rate(5));
    expect(await ask({ want: 3 })).toMatchObject({ granted: 3 });
    await t.advance(200);
    await ask({ kept: 0 });
    expect(await ask({ want: 9, seq: 2 })).toMatchObject({ granted: 5 });
    // The first grant no longer counts. The starts that were given back must not count as negative starts.
    await t.advance(850);
    expect(await ask({ want: 9, seq: 3 })).toMatchObject({ granted: 0 });
    await t.advance(165);
    expect(await ask({ want: 9, seq: 4 })).toMatchObject({ granted: 5 });
  });

  it('take back unused starts from the time of their grant, not from later starts of others', async () => {
    await set('api', rate(5));
    expect(await ask({ want: 3 })).toMatchObject({ granted: 3 });
    await t.advance(500);
    expect(await ask({ want: 2 }, OTHER)).toMatchObject({ granted: 2 });
    await t.advance(100);
    await ask({ kept: 0 });
    // The two starts of the other queue still count.
    await t.advance(450);
    expect(await ask({ want: 9, seq: 2 })).toMatchObject({ granted: 3 });
  });

  it('take back what a job did not cost from the starts of its time', async () => {
    await set('api', rate(5));
    expect(await ask({ want: 1 })).toMatchObject({ granted: 1 });
    await ask({ kept: 5 });
    await t.advance(500);
    const charge = (count: number, countedAt: number) =>
      t.engine.limits.charge(QUEUE, [{ field: 's:api', holdMs: 0, count, countedAt }]);
    await charge(-4, t.now - 500);
    expect(await ask({ want: 4, seq: 2 })).toMatchObject({ granted: 4 });
    await ask({ kept: 4, seq: 2 });
    // A correction of starts that no longer count changes nothing.
    await charge(-3, t.now - 5_000);
    await t.advance(550);
    expect(await ask({ want: 9, seq: 3 })).toMatchObject({ granted: 1 });
  });

  it('say when they granted starts, also in a repetition', async () => {
    await set('api', rate(5));
    const at = t.now;
    expect(await ask({ want: 3 })).toMatchObject({ granted: 3, grantedAt: at });
    await t.advance(30);
    expect(await ask({ want: 3 })).toMatchObject({ granted: 3, grantedAt: at });
    expect(await ask({ want: 1, seq: 2 })).toMatchObject({ granted: 1, grantedAt: t.now });
  });

  it('grant a repeated call the same number, and count it once', async () => {
    await set('api', rate(4));
    expect(await ask({ want: 3 })).toMatchObject({ granted: 3 });
    expect(await ask({ want: 3 })).toMatchObject({ granted: 3 });
    await ask({ kept: 1 });
    await ask({ kept: 1 });
    expect(await t.engine.limits.shared(QUEUE)).toMatchObject([{ field: 's:api', left: 3, users: [QUEUE] }]);
    expect(await ask({ want: 9, seq: 2 })).toMatchObject({ granted: 3 });
  });

  it('count the cost of jobs', async () => {
    await set('api', rate(10));
    await ask({ want: 2 });
    await ask({ kept: 8 });
    expect(await t.engine.limits.shared(OTHER)).toMatchObject([{ left: 2 }]);
    await t.engine.limits.charge(QUEUE, [{ field: 's:api', holdMs: 0, count: 2 }]);
    expect(await ask({ want: 1, seq: 2 })).toMatchObject({ granted: 0 });
  });

  it('let at most concurrency jobs run, and wake the queue that found no place', async () => {
    await set('api', { concurrency: 3 });
    expect(await ask({ want: 2 })).toEqual({ ...nothing, granted: 2 });
    expect(await ask({ want: 4 }, OTHER)).toEqual({ ...nothing, granted: 1 });
    expect(await ask({ want: 1, running: 1 }, OTHER)).toMatchObject({ granted: 1 });
    await ask({ kept: 1, running: 1 }, OTHER);
    const [state] = await t.engine.limits.shared(QUEUE);
    expect({ ...state, users: state!.users.toSorted() }).toMatchObject({
      running: 3,
      users: [QUEUE, OTHER].toSorted(),
    });
    expect(await ask({ want: 2, seq: 2, running: 1 }, OTHER)).toMatchObject({ granted: 0 });
    // The lease is renewed, and no job has ended.
    expect(await ask({ running: 2 })).toEqual({ ...nothing, granted: 0 });
    expect(await ask({ running: 1 })).toEqual({ ...nothing, granted: 0, woken: [OTHER] });
    expect(await ask({ want: 2, seq: 3, running: 1 }, OTHER)).toMatchObject({ granted: 1 });
  });

  it('wake all queues that found no place, once', async () => {
    await set('api', { concurrency: 1 });
    expect(await ask({ want: 1 })).toMatchObject({ granted: 1 });
    for (const queue of [OTHER, THIRD, OTHER])
      expect(await ask({ want: 1 }, queue)).toMatchObject({ granted: 0 });
    expect((await ask({})).woken.toSorted()).toEqual([OTHER, THIRD].toSorted());
    expect(await ask({ want: 1, seq: 2 }, THIRD)).toMatchObject({ granted: 1 });
    expect(await ask({ seq: 2 }, THIRD)).toMatchObject({ woken: [] });
  });

  it('do not wake the queue of a worker that had no job for its places', async () => {
    await set('api', { concurrency: 1 });
    expect(await ask({ want: 2 })).toMatchObject({ granted: 1 });
    expect(await ask({ kept: 0, unused: true })).toMatchObject({ woken: [] });
    expect(await ask({ want: 2, seq: 2 })).toMatchObject({ granted: 1 });
    expect(await ask({ want: 1 }, OTHER)).toMatchObject({ granted: 0 });
    expect(await ask({ seq: 2, kept: 0, unused: true })).toMatchObject({ woken: [OTHER] });
  });

  it('wake the queue of that worker if another worker of the queue found no place meanwhile', async () => {
    await set('api', { concurrency: 1 });
    expect(await ask({ want: 2 })).toMatchObject({ granted: 1 });
    expect(await ask({ want: 1, worker: 'w2' })).toMatchObject({ granted: 0 });
    expect(await ask({ kept: 0, unused: true })).toMatchObject({ woken: [QUEUE] });
    // The other worker was woken, so it waits no longer.
    expect(await ask({ want: 2, seq: 2 })).toMatchObject({ granted: 1 });
    expect(await ask({ seq: 2, kept: 0, unused: true })).toMatchObject({ woken: [] });
  });

  it('do not wake the queue of that worker if another worker of the queue found some places', async () => {
    await set('api', { concurrency: 3 });
    expect(await ask({ want: 2 })).toMatchObject({ granted: 2 });
    expect(await ask({ want: 2, worker: 'w2' })).toMatchObject({ granted: 1 });
    expect(await ask({ kept: 0, unused: true })).toMatchObject({ woken: [] });
  });

  it('leave each queue that found too few places its share of them', async () => {
    await set('api', { concurrency: 4 });
    expect(await ask({ want: 10 })).toMatchObject({ granted: 4 });
    expect(await ask({ want: 10 }, OTHER)).toMatchObject({ granted: 0 });
    expect(await ask({ want: 10, seq: 2, running: 3 })).toMatchObject({ granted: 0, woken: [OTHER] });
    expect(await ask({ want: 10, seq: 3, running: 2 })).toMatchObject({ granted: 0 });
    expect(await ask({ want: 10, seq: 2 }, OTHER)).toMatchObject({ granted: 2 });
    // Both have their share.
    expect(await ask({ want: 10, seq: 4, running: 1 })).toMatchObject({ granted: 1, woken: [] });
    expect(await ask({ want: 10, seq: 3, running: 1 }, OTHER)).toMatchObject({ granted: 1, woken: [] });
    expect((await ask({ seq: 4 })).woken.toSorted()).toEqual([OTHER, QUEUE].toSorted());
  });

  it('leave a queue only what it lacks of its share, and a queue that got all it wanted nothing', async () => {
    await set('api', { concurrency: 6 });
    expect(await ask({ want: 6 })).toMatchObject({ granted: 6 });
    expect(await ask({ want: 6 }, OTHER)).toMatchObject({ granted: 0 });
    expect(await ask({ want: 3, seq: 2, running: 3 })).toMatchObject({ granted: 0 });
    expect(await ask({ want: 2, seq: 2 }, OTHER)).toMatchObject({ granted: 2 });
    expect(await ask({ want: 1, seq: 3, running: 2 })).toMatchObject({ granted: 1 });
    expect(await ask({ want: 4, seq: 3, running: 2 }, OTHER)).toMatchObject({ granted: 1 });
    // The other queue is short of places now, but has its share of them.
    expect(await ask({ want: 1, seq: 4, running: 2 })).toMatchObject({ granted: 1 });
    expect(await ask({ want: 1, seq: 5, running: 2 })).toMatchObject({ granted: 1 });
    // This queue got all it wanted.
    expect(await ask({ want: 1, seq: 4, running: 2 }, OTHER)).toMatchObject({ granted: 1 });
    await ask({ seq: 6, running: 1 });
    expect(await ask({ want: 3, seq: 5, running: 2 }, OTHER)).toMatchObject({ granted: 3 });
  });

  it('leave nothing to others once they have no concurrency any more', async () => {
    await set('api', { concurrency: 1, ...rate(9) });
    expect(await ask({ want: 1 })).toMatchObject({ granted: 1 });
    expect(await ask({ want: 1 }, OTHER)).toMatchObject({ granted: 0 });
    await set('api', rate(9));
    expect(await ask({ want: 3, seq: 2, running: 1 })).toMatchObject({ granted: 3 });
  });

  it('let queues take turns if they are more than the places', async () => {
    await set('api', { concurrency: 1 });
    const queues = [QUEUE, OTHER, THIRD];
    const seqs = new Map(queues.map((queue) => [queue, 0]));
    const next = async (queue: string) => {
      seqs.set(queue, seqs.get(queue)! + 1);
      return (await ask({ want: 5, seq: seqs.get(queue)! }, queue)).granted;
    };
    const starts: string[] = [];
    for (let round = 0; round < 5; round++) {
      // The queue whose job has ended asks first, and finds that the others wait.
      const last = starts.at(-1);
      for (const queue of last ? [last, ...queues.filter((one) => one !== last)] : queues)
        // oxlint-disable-next-line no-await-in-loop
        if ((await next(queue)) > 0) starts.push(queue);
    }
    expect(starts.slice(2)).toEqual(starts.slice(2).map((_, i) => starts[(i + 2) % 3]));
    expect(new Set(starts)).toEqual(new Set(queues));
  });

  it('leave a queue no places that it would not use', async () => {
    await set('api', { concurrency: 2 });
    await set('gpu', { concurrency: 1 });
    expect(await ask({ want: 9 })).toMatchObject({ granted: 2 });
    // A worker that asks no more, because it was killed.
    expect(await ask({ want: 9 }, OTHER)).toMatchObject({ granted: 0 });
    expect(await ask({ want: 9, seq: 2, running: 1 })).toMatchObject({ granted: 0 });
    await t.advance(RULES.shortMs);
    expect(await ask({ want: 9, seq: 3, running: 1 })).toMatchObject({ granted: 1 });
    // One that has no job for its place.
    expect(await ask({ want: 9, seq: 2 }, OTHER)).toMatchObject({ granted: 0 });
    await ask({ seq: 3, running: 1 });
    expect(await ask({ want: 9, seq: 3 }, OTHER)).toMatchObject({ granted: 1 });
    await ask({ seq: 3, kept: 0, unused: true }, OTHER);
    expect(await ask({ want: 9, seq: 4, running: 1 })).toMatchObject({ granted: 1 });
    // One that another limit holds back.
    expect(await ask({ limits: ['gpu'], worker: 'w2', want: 1 })).toMatchObject({ granted: 1 });
    await ask({ seq: 4, running: 1 });
    expect(await ask({ limits: ['api', 'gpu'], want: 9, seq: 4 }, OTHER)).toMatchObject({ granted: 0 });
    expect(await ask({ want: 9, seq: 5, running: 1 })).toMatchObject({ granted: 1 });
  });

  it('are not passed although Redis was away for longer than a lease: a living worker keeps its places', async () => {
    await set('api', { concurrency: 2 });
    expect(await ask({ want: 1, worker: 'dead' })).toMatchObject({ granted: 1 });
    expect(await ask({ want: 1, worker: 'alive' })).toMatchObject({ granted: 1 });
    await t.advance(5 * LEASE_MS);
    expect(await ask({ want: 2 }, OTHER)).toMatchObject({ granted: 0 });
    await ask({ running: 1, worker: 'alive' });
    await t.advance(LEASE_MS / 2 - 1);
    expect(await ask({ want: 2, seq: 2 }, OTHER)).toMatchObject({ granted: 0 });
    expect(await t.engine.limits.shared(QUEUE)).toMatchObject([{ running: 2 }]);
    await t.advance(1);
    expect(await ask({ want: 2, seq: 3 }, OTHER)).toMatchObject({ granted: 1 });
    await t.advance(LEASE_MS / 2);
    expect(await ask({ want: 2, seq: 4, running: 1 }, OTHER)).toMatchObject({ granted: 0 });
  });

  it('free the places of a worker that is gone half a lease after its lease is over, and count one that renews it', async () => {
    await set('api', { concurrency: 2 });
    expect(await ask({ want: 1, worker: 'dead' })).toMatchObject({ granted: 1 });
    expect(await ask({ want: 1, worker: 'alive' })).toMatchObject({ granted: 1 });
    await t.advance(LEASE_MS - 1);
    await ask({ seq: 0, running: 1, worker: 'alive' });
    expect(await ask({ want: 2 }, OTHER)).toMatchObject({ granted: 0 });
    await t.advance(1);
    expect(await ask({ want: 2, seq: 2 }, OTHER)).toMatchObject({ granted: 0 });
    await t.advance(LEASE_MS / 2 - 1);
    expect(await ask({ want: 2, seq: 3 }, OTHER)).toMatchObject({ granted: 0 });
    await t.advance(1);
    expect(await ask({ want: 2, seq: 4 }, OTHER)).toMatchObject({ granted: 1 });
  });

  it('keep the places of a grant if an earlier call arrives late, which then only renews the lease', async () => {
    await set('api', { concurrency: 2 });
    expect(await ask({ want: 2, seq: 5 })).toMatchObject({ granted: 2 });
    await t.advance(LEASE_MS - 1);
    await ask({ seq: 4, kept: 0 });
    await ask({ seq: 4 });
    await t.advance(1);
    expect(await ask({ want: 1 }, OTHER)).toMatchObject({ granted: 0 });
    await ask({ seq: 5, running: 1 });
    expect(await ask({ want: 2, seq: 2 }, OTHER)).toMatchObject({ granted: 1 });
  });

  it('may be several for one queue: the tightest decides, and the others are charged no more than that', async () => {
    await set('api', rate(10));
    await set('gpu', { concurrency: 2 });
    expect(await ask({ limits: ['api', 'gpu'], want: 9 })).toMatchObject({ granted: 2 });
    expect(await t.engine.limits.shared(QUEUE)).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ field: 's:api', left: 8 }),
        expect.objectContaining({ field: 's:gpu', running: 2 }),
      ]),
    );
  });

  it('grant nothing while the store does not have one of them, because its data was lost', async () => {
    await set('api', rate(10));
    expect(await ask({ limits: ['api', 'gpu'], want: 9 })).toMatchObject({ granted: 0, isLost: true });
    await set('gpu', { concurrency: 2 });
    expect(await ask({ limits: ['api', 'gpu'], want: 9, seq: 2 })).toMatchObject({
      granted: 2,
      isLost: false,
    });
  });

  it('can be changed while they apply, and can be held for a while', async () => {
    await set('api', { concurrency: 1 });
    await set('api', { concurrency: 5 }, 'live');
    expect(await ask({ want: 9 })).toMatchObject({ granted: 5 });
    await set('api', null, 'live');
    await t.engine.limits.charge(OTHER, [{ field: 's:api', holdMs: 400, count: 0 }]);
    expect(await ask({ want: 1, seq: 2 })).toMatchObject({ granted: 0, opensInMs: 400 });
    expect(await t.engine.limits.shared(QUEUE)).toMatchObject([
      { field: 's:api', code: { concurrency: 1 }, live: null, blockedForMs: 400 },
    ]);
    await t.engine.limits.charge(OTHER, [{ field: 's:api', holdMs: -1, count: 0 }]);
    expect(await ask({ want: 1, seq: 3 })).toMatchObject({ granted: 1 });
    expect(await t.engine.limits.list(QUEUE)).toMatchObject([{ field: 'q', rule: {} }]);
  });
});
