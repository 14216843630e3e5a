import { describe, expect, it } from 'vitest';
import { cancel } from '#lib/engine/scripts/admin.js';
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
  WAITS,
  WORKER,
} from './support.js';
import { changingNothing, itRefusesWrongTypes, without } from './unchanged.js';

const q = useQueue();

const WHY = 'the customer "changed" her mind, naïvely';
const cancelling = (id = 'x', reason = WHY) => q.engine.admin.cancel(QUEUE, id, reason);
/** Keys apart from those of every queue and the record of the reason. */
const left = async () =>
  without(await q.dump(), 'events', 'cancelled', 'doorbell', 'lane:lane', `worker:${WORKER}`);
const saidOf = async (id: string) =>
  (await q.events())
    .filter((event) => event.id === id)
    .map(({ type, name, attempt, reason }) => [type, name, attempt, reason]);

describe('ends a job with everything it left, and no other, when it is', () => {
  it.each(WAITS)('%s', async (state, bring) => {
    await bring(q);
    await q.add('other', job('other late', { delayMs: 60_000, priority: 2 }));
    const before = await q.now();
    expect(await cancelling()).toBe('cancelled');
    expect(await q.engine.admin.get(QUEUE, 'x')).toBeNull();
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 1, delayed: 1, active: 0, dead: 0 });
    expect(JSON.stringify(await left())).not.toContain('"x"');
    const attempt = state === 'waiting for a retry' ? 1 : 0;
    expect((await saidOf('x')).at(-1)).toEqual(['cancelled', 'work', attempt, WHY]);
    expect(await q.totals()).toMatchObject({ cancelled: '1' });
    const known = await q.engine.admin.cancelled(QUEUE, 'x');
    expect(known).toMatchObject({ reason: WHY });
    expect(known?.agoMs).toBeLessThanOrEqual((await q.now()) - before + 100);
    expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
    expect(await changingNothing(q, () => cancelling())).toBe('not-found');
    expect(await q.add('x')).toEqual([]);
  });
});

describe('finds nothing to cancel', () => {
  it('if there is no such job', async () => {
    expect(await changingNothing(q, () => cancelling())).toBe('not-found');
    expect(await q.engine.admin.cancelled(QUEUE, 'x')).toBeNull();
  });

  it('if it has died, or has completed and is kept', async () => {
    await q.bury('died');
    await q.hold('kept');
    await q.settle(kept('kept', 60_000, '1'));
    expect(await changingNothing(q, () => cancelling('died'))).toBe('not-found');
    expect(await changingNothing(q, () => cancelling('kept'))).toBe('not-found');
  });

  it('if it is in no place, or held by an unknown worker, which must be repaired first', async () => {
    await q.hold('x');
    await q.admin.del(q.key('workers'));
    expect(await changingNothing(q, () => cancelling())).toBe('not-found');
    await q.admin.del(q.key('active'));
    expect(await changingNothing(q, () => cancelling())).toBe('not-found');
  });
});

describe('a job that runs', () => {
  it('is marked once, without an event, and stays in its place', async () => {
    await q.hold('x', 'other');
    const before = without(await q.dump(), 'toCancel');
    expect(await cancelling()).toBe('signalled');
    expect(await q.hash('toCancel')).toEqual({ x: WHY });
    expect(without(await q.dump(), 'toCancel')).toEqual(before);
    expect(await changingNothing(q, () => cancelling('x', 'another reason'))).toBe('signalled');
    expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });

  const outcomes: Record<string, SettledRun> = {
    retried: retried('x'),
    'retried later, by rank': retried('x', { delayMs: 9_000, priority: 4 }),
    snoozed: snoozed('x', 5_000),
    dead: dead('x'),
    'dead and not run': dead('x', false),
    released: released('x'),
  };
  const before = async () => {
    await q.hold('x');
    await q.admin.hset(q.key('attempts'), 'x', 2);
    await q.note('x');
    await q.add('waits');
    await cancelling();
  };

  it.each(Object.keys(outcomes))('ends as cancelled when its worker settles it as %s', async (kind) => {
    await before();
    expect((await q.settle(outcomes[kind]!)).lost).toEqual([]);
    expect(JSON.stringify(await left())).not.toContain('"x"');
    expect((await saidOf('x')).slice(2)).toEqual([
      ['progress', 'work', 1, ''],
      ['cancelled', 'work', 3, WHY],
    ]);
    expect(await q.totals()).toEqual({ cancelled: '1' });
    expect(await q.engine.admin.cancelled(QUEUE, 'x')).toMatchObject({ reason: WHY });
    expect(await q.admin.zcard(q.key('workers'))).toBe(0);
    expect(await q.list('wait')).toEqual(['waits']);
  });

  it.each([
    ['completed', completed('x')],
    ['kept', kept('x', 60_000, '1')],
  ] as const)('is %s if the handler was faster, and the mark is removed', async (kind, outcome) => {
    await before();
    await q.settle(outcome);
    expect(await q.admin.exists(q.key('toCancel'))).toBe(0);
    expect((await saidOf('x')).at(-1)).toEqual(['completed', 'work', 1, '']);
    expect(await q.totals()).toEqual({ processed: '1' });
    expect(await q.engine.admin.cancelled(QUEUE, 'x')).toBeNull();
    expect((await q.engine.admin.get(QUEUE, 'x'))?.state).toBe(kind === 'kept' ? 'completed' : undefined);
  });

  it('stays with the worker that holds it: an outcome from another worker is lost', async () => {
    await q.hold('x');
    await cancelling();
    await q.exchange({ worker: 'w2' });
    const { lost } = await q.exchanged({ worker: 'w2', settled: [released('x')] });
    expect(lost).toEqual(['x']);
    expect(await q.engine.admin.get(QUEUE, 'x')).toMatchObject({ state: 'active', worker: WORKER });
  });

  it('ends within a batch, whose other runs are settled and reported as usual', async () => {
    await q.hold('a', 'x', 'b', 'y', 'c');
    await cancelling('x', 'first');
    await cancelling('y', 'second');
    const { lost } = await q.settle(retried('a'), retried('x'), completed('b'), dead('y'), completed('gone'));
    expect(lost).toEqual(['gone']);
    const said = (await q.events())
      .slice(10)
      .map(({ number, type, id, reason }) => [number, type, id, reason]);
    expect(said).toEqual([
      [11, 'completed', 'b', ''],
      [13, 'retrying', 'a', ''],
      [16, 'cancelled', 'x', 'first'],
      [17, 'cancelled', 'y', 'second'],
    ]);
    expect(await q.totals()).toEqual({ processed: '1', failed: '1', cancelled: '2' });
  });

  it('is reported as cancelled if its batch has no other event', async () => {
    await q.hold('x');
    await cancelling();
    await q.settle(retried('gone'), released('x'));
    expect((await q.events()).slice(2)).toMatchObject([{ number: 3, type: 'cancelled', id: 'x' }]);
  });

  it('ends when a stopping worker gives it back, and the other jobs go to the line', async () => {
    await q.hold('a', 'x', 'b');
    await cancelling();
    const call = { worker: WORKER, ids: ['a', 'x', 'b', 'gone'], leave: true };
    expect(await q.engine.release(QUEUE, call)).toEqual({ lost: ['gone'] });
    expect(await q.list('wait')).toEqual(['a', 'b']);
    expect((await saidOf('x')).at(-1)).toEqual(['cancelled', 'work', 1, WHY]);
    expect((await saidOf('b')).at(-1)).toEqual(['released', 'work', 1, '']);
    expect(await q.totals()).toEqual({ cancelled: '1' });
    expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });

  it('ends without ringing the bell if it was the only job of its worker', async () => {
    await q.hold('x');
    await cancelling();
    await q.wasRung();
    await q.engine.release(QUEUE, { worker: WORKER, ids: ['x'], leave: false });
    expect(await q.wasRung()).toBe(false);
  });

  it('ends when the lease of its worker ends, whatever the number of its stalls', async () => {
    await q.hold('a', 'x', 'y');
    await q.admin.hset(q.key('stalls'), { x: 5, y: 1 });
    await cancelling('x');
    await cancelling('y');
    await q.admin.zadd(q.key('workers'), 1, WORKER);
    const call = { worker: WORKER, leaseMs: LEASE_MS, beatMs: 1_000, maxStalls: 5 };
    expect(await q.engine.recover(QUEUE, call)).toMatchObject({ kind: 'doubted' });
    await q.admin.hset(q.key('worker'), 'doubt', `1 ${(await q.now()) - 1_500}`);
    expect(await q.engine.recover(QUEUE, call)).toEqual({
      kind: 'recovered',
      waiting: ['a'],
      suspects: [],
      dead: [],
      cancelled: ['x', 'y'],
      more: false,
    });
    expect(await q.hash('stalls')).toEqual({ a: '1' });
    expect((await saidOf('x')).at(-1)).toEqual(['cancelled', 'work', 1, WHY]);
    expect((await saidOf('a')).at(-1)).toEqual(['stalled', 'work', 1, '']);
    expect(await q.totals()).toEqual({ cancelled: '2' });
    // The worker was not dead after all. None of its reports brings the jobs back.
    expect((await q.exchange({ settled: [retried('x')] })).kind).toBe('unknown-worker');
    expect(await q.engine.admin.get(QUEUE, 'x')).toBeNull();
  });
});

describe('the record of the reason', () => {
  it('is gone a minute after the last', async () => {
    await q.add('x');
    await cancelling();
    expect(await q.admin.pttl(q.key('cancelled'))).toBeLessThanOrEqual(60_000);
    expect(await q.admin.pttl(q.key('cancelled'))).toBeGreaterThan(50_000);
  });

  it('holds no more than 1,000, and the newest', async () => {
    const many = Array.from({ length: 1_000 }, (_, i) => [`old${i}`, '1\nlong ago']).flat();
    await q.admin.hset(q.key('cancelled'), ...many);
    for (let i = 0; i < 3; i++) {
      await q.add(`x${i}`);
      await cancelling(`x${i}`);
    }
    expect(await q.admin.hlen(q.key('cancelled'))).toBe(1_000);
  });

  it('holds 1,000 if more end at once', async () => {
    const ids = Array.from({ length: 1_200 }, (_, i) => `j${i}`);
    await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, job(id).body]));
    await q.admin.sadd(q.key('active'), ...ids);
    await q.admin.hset(q.key('toCancel'), ...ids.flatMap((id) => [id, WHY]));
    await q.engine.release(QUEUE, { worker: WORKER, ids, leave: true });
    expect(await q.admin.hlen(q.key('cancelled'))).toBe(1_000);
    expect(await q.admin.exists(q.key('toCancel'), q.key('jobs'), q.key('wait'))).toBe(0);
    expect((await q.events()).filter(({ type }) => type === 'cancelled')).toHaveLength(1_200);
    expect(await q.totals()).toEqual({ cancelled: '1200' });
  });
});

describe('ids and reasons like fields of objects', () => {
  it.each(['__proto__', 'constructor', 'meta', '0'])('%s', async (id) => {
    await q.hold(id);
    expect(await cancelling(id, '__proto__')).toBe('signalled');
    expect(await q.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({
      cancels: new Map([[id, '__proto__']]),
    });
    await q.settle(released(id));
    expect((await saidOf(id)).at(-1)).toEqual(['cancelled', 'work', 1, '__proto__']);
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: cancel.keys,
    except: ['events', 'cancelled'],
    async prepare() {
      await q.hold('x', 'held');
      await q.note('x');
      await q.settle(retried('x', { delayMs: 60_000, priority: 2 }));
      return () => cancelling();
    },
  });
});
