import { describe, expect, it } from 'vitest';
import { exchange } from '#lib/engine/scripts/work.js';
import {
  completed,
  dead,
  job,
  kept,
  LEASE_MS,
  QUEUE,
  released,
  retried,
  useQueue,
  WORKER,
} from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';
import { countsOf } from '../support/queue-states.js';

// Numbers, leases and refusals. Settling and claiming have specs of their own.
const q = useQueue();

const lease = async () => Number(await q.admin.zscore(q.key('workers'), WORKER));

describe('the number of an exchange', () => {
  it('repeated, returns the same claim and settles nothing twice', async () => {
    await q.hold('a', 'b', 'c');
    await q.add('d', 'e');
    const call = {
      seq: 2,
      want: 2,
      settled: [completed('a'), retried('b', { delayMs: 60_000 }), dead('gone')],
    };
    const first = await q.exchanged(call);
    expect(first.lost).toEqual(['gone']);
    expect(first.claimed.map(({ id }) => id)).toEqual(['d', 'e']);

    const again = await changingNothing(q, () => q.exchanged(call));
    expect(again.claimed).toEqual(first.claimed);
    expect(again.lost).toEqual(first.lost);
  });

  it('repeated, returns attempts and stalls as the first time', async () => {
    await q.admin.hset(q.key('attempts'), 'b', 2);
    await q.admin.hset(q.key('stalls'), 'b', 1);
    await q.add('a', 'b');
    const call = { seq: 1, want: 5 };
    const { claimed } = await q.exchanged(call);
    expect(claimed).toEqual([
      { id: 'a', body: job('a').body, failed: 0, stalls: 0 },
      { id: 'b', body: job('b').body, failed: 2, stalls: 1 },
    ]);
    expect((await q.exchanged(call)).claimed).toEqual(claimed);
  });

  it('repeated with nothing claimed, claims nothing although there is work by now', async () => {
    await q.exchange({ seq: 1, want: 5 });
    await q.add('a');
    const again = await changingNothing(q, () => q.exchanged({ seq: 1, want: 5 }));
    expect(again.claimed).toEqual([]);
  });

  it('lower than the last, does nothing', async () => {
    await q.hold('a');
    await q.exchange();
    await q.add('b');
    const late = await changingNothing(q, () => q.exchange({ seq: 1, want: 5, settled: [completed('a')] }));
    expect(late.kind).toBe('stale');
  });

  it('above 1 of an unknown worker, does nothing', async () => {
    await q.add('a');
    const unknown = await changingNothing(q, () => q.exchange({ seq: 2, want: 5 }));
    expect(unknown.kind).toBe('unknown-worker');
  });

  it('is kept with the claimed jobs and the length of a lease, for longer than a clock is likely to jump', async () => {
    await q.add('a', 'b');
    await q.exchange({ want: 5, settled: [completed('gone')] });
    expect(await q.hash('worker')).toEqual({ seq: '1', gave: 'a\nb', lost: 'gone', lease: '8000' });
    expect(await q.admin.pttl(q.key('worker'))).toBeGreaterThan(500_000);
    await q.exchange({ seq: 1, pipelined: true, settled: [completed('a')] });
    expect(await q.hash('worker')).toMatchObject({ seq: '1', gave: 'a\nb', seq2: '1', gave2: '', lost2: '' });
  });
});

describe('the lease', () => {
  it('begins with the first claim and is renewed by every exchange while anything is held', async () => {
    const before = await q.now();
    await q.hold('a');
    expect(await lease()).toBeGreaterThanOrEqual(before + LEASE_MS);
    expect(await lease()).toBeLessThanOrEqual((await q.now()) + LEASE_MS);
    await q.admin.zadd(q.key('workers'), 5, WORKER);
    await q.exchange({ leaseMs: 1_234 });
    expect(await lease()).toBeGreaterThanOrEqual(before + 1_234);
    expect(await lease()).toBeLessThan(before + LEASE_MS);
  });

  it('does not exist for a worker that holds nothing', async () => {
    await q.exchange({ want: 5 });
    expect(await q.admin.exists(q.key('workers'))).toBe(0);
  });

  it('continues if the last job is settled and another one claimed in one exchange', async () => {
    await q.hold('a');
    await q.add('b');
    await q.exchange({ want: 1, settled: [completed('a')] });
    expect(await q.admin.smembers(q.key('active'))).toEqual(['b']);
    expect(await q.admin.zcard(q.key('workers'))).toBe(1);
  });

  it('of another worker that ends first is returned, never its own', async () => {
    await q.hold('a');
    expect((await q.exchanged()).leaseInMs).toBeNull();
    await q.add('b');
    await q.claim(1, 'w2');
    await q.admin.zadd(q.key('workers'), (await q.now()) + 60_000, 'w2', (await q.now()) + 90_000, 'w3');
    const { leaseInMs } = await q.exchanged();
    expect(leaseInMs).toBeGreaterThan(50_000);
    expect(leaseInMs).toBeLessThanOrEqual(60_000);
    await q.admin.zadd(q.key('workers'), 1, 'w3');
    expect((await q.exchanged()).leaseInMs).toBe(0);
  });
});

it('settles a mixed batch, promotes and claims in one call', async () => {
  await q.hold('done', 'kept', 'again', 'later', 'snoozed', 'dead', 'back');
  await q.add('next', job('due', { dueAt: 1 }), job('vip', { priority: 1 }));
  const { lost, claimed, dueInMs } = await q.exchanged({
    want: 3,
    settled: [
      completed('done'),
      kept('kept', 60_000, '42'),
      retried('again'),
      retried('later', { delayMs: 5_000 }),
      retried('snoozed', { delayMs: 9_000, failure: null, counted: false }),
      dead('dead'),
      released('back'),
      completed('not mine'),
    ],
  });
  expect(lost).toEqual(['not mine']);
  expect(claimed.map(({ id }) => id)).toEqual(['back', 'next', 'again']);
  expect(dueInMs).toBeGreaterThan(4_000);
  expect(dueInMs).toBeLessThanOrEqual(5_000);
  expect(await q.list('wait')).toEqual(['due']);
  expect(await q.engine.admin.counts(QUEUE)).toEqual({
    ...countsOf({ waiting: 2, delayed: 2, active: 3, completed: 1, dead: 1 }),
    paused: false,
    isLimited: false,
  });
  const jobs = await q.admin.hkeys(q.key('jobs'));
  expect(jobs.toSorted()).toEqual(
    ['kept', 'again', 'later', 'snoozed', 'dead', 'back', 'next', 'due', 'vip'].toSorted(),
  );
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: exchange.keys,
    // A stream that fails must never fail a settlement.
    except: ['jobsA', 'events', 'cancelled'],
    async prepare() {
      await q.bury('buried');
      await q.hold('done', 'kept', 'again', 'later', 'dead', 'back', 'old');
      await q.settle(kept('old', 0, '1'));
      await q.note('done');
      await q.admin.hset(q.key('stalls'), 'back', 2);
      await q.add('next', job('due', { dueAt: 1, priority: 3 }), job('vip', { priority: 1 }));
      const seq = Number(await q.admin.hget(q.key('worker'), 'seq')) + 1;
      return () =>
        q.exchange({
          seq,
          want: 3,
          settled: [
            completed('done'),
            kept('kept', 60_000, '42'),
            retried('again'),
            retried('later', { delayMs: 5_000, priority: 2 }),
            dead('dead'),
            released('back'),
          ],
        });
    },
  });
});
