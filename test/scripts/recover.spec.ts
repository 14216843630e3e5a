import { describe, expect, it } from 'vitest';
import type { RecoverCall } from '#lib/contract/engine.js';
import { recover } from '#lib/engine/scripts/leases.js';
import { completed, LEASE_MS, QUEUE, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const BEAT_MS = 2_000;
const CALL: RecoverCall = { worker: WORKER, beatMs: BEAT_MS, leaseMs: LEASE_MS, maxStalls: 5 };
const again = (more: Partial<RecoverCall> = {}) => q.engine.recover(QUEUE, { ...CALL, ...more });

/** The lease of `WORKER` ended, and Redis has answered for long enough since. The next call takes its jobs. */
async function leaseIsOver(): Promise<void> {
  const lease = (await q.now()) - 10_000;
  await q.admin.zadd(q.key('workers'), lease, WORKER);
  await q.admin.hset(q.key('worker'), 'doubt', `${lease} ${lease + 1}`);
}

async function loseAndRecover(more: Partial<RecoverCall> = {}) {
  await leaseIsOver();
  const answer = await again(more);
  if (answer.kind !== 'recovered') throw new Error(`not recovered: ${answer.kind}`);
  return answer;
}

it('suspects go to the end of their line, the oldest first', async () => {
  await q.hold('a', 'b', 'c');
  await q.admin.rpush(q.key('suspects'), 's');
  await q.admin.hset(q.key('stalls'), 'a', 1, 'b', 1);
  expect(await loseAndRecover()).toMatchObject({ waiting: ['c'], suspects: ['a', 'b'] });
  expect(await q.list('suspects')).toEqual(['s', 'a', 'b']);
});

it('an old doubt does not prevent a new one', async () => {
  await q.hold('a');
  const lease = (await q.now()) - 10_000;
  await q.admin.zadd(q.key('workers'), lease, WORKER);
  await q.admin.hset(q.key('worker'), 'doubt', '1 2');
  expect(await again()).toMatchObject({ kind: 'doubted' });
  expect(await q.admin.hget(q.key('worker'), 'doubt')).toMatch(new RegExp(`^${lease} \\d+$`));
});

describe('a worker that may be alive', () => {
  it('is alive without a lease: it holds nothing', async () => {
    await q.exchange();
    expect(await changingNothing(q, () => again())).toEqual({ kind: 'alive' });
  });

  it('keeps a lease that is longer than ours, as long as it is no longer than its own', async () => {
    await q.add('a');
    await q.exchange({ want: 1, leaseMs: 60_000 });
    expect(await changingNothing(q, () => again())).toEqual({ kind: 'alive' });
    await q.admin.zadd(q.key('workers'), (await q.now()) + 3_600_000, WORKER);
    expect(await again()).toEqual({ kind: 'alive' });
    const lease = Number(await q.admin.zscore(q.key('workers'), WORKER));
    expect(lease).toBeLessThanOrEqual((await q.now()) + 60_000);
    expect(lease).toBeGreaterThan((await q.now()) + 50_000);
  });

  it('is only doubted when its lease is first found to be over, however long ago it ended', async () => {
    await q.hold('a');
    await q.admin.zadd(q.key('workers'), 1, WORKER);
    expect(await again()).toEqual({ kind: 'doubted', againInMs: BEAT_MS });
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ active: 1 });
    const second = await changingNothing(q, () => again());
    expect(second).toMatchObject({ kind: 'doubted' });
  });

  it('is doubted shortly before the end, until one heartbeat interval after the end', async () => {
    const beatMs = 30_000;
    await q.add('a');
    await q.exchange({ want: 1, leaseMs: 60_000 });
    await q.admin.zadd(q.key('workers'), (await q.now()) + 20_000, WORKER);
    expect(await again({ beatMs })).toEqual({ kind: 'doubted', againInMs: beatMs });
    const lease = (await q.now()) + 20_000;
    await q.admin.zadd(q.key('workers'), lease, WORKER);
    await q.admin.hset(q.key('worker'), 'doubt', `${lease} ${lease - 60_000}`);
    const answer = await again({ beatMs });
    expect(answer.kind).toBe('doubted');
    const { againInMs } = answer as { againInMs: number };
    expect(againInMs).toBeGreaterThan(10_000);
    expect(againInMs).toBeLessThanOrEqual(20_000);
  });

  it('has a record that expires, also if the mark is all that is left of it', async () => {
    await q.hold('a');
    await q.admin.zadd(q.key('workers'), 1, WORKER);
    await q.admin.del(q.key('worker'));
    expect(await again()).toMatchObject({ kind: 'doubted' });
    expect(await q.hash('worker')).toEqual({ doubt: expect.stringMatching(/^1 /) });
    const left = await q.admin.pttl(q.key('worker'));
    expect(left).toBeGreaterThan(86_390_000);
    expect(left).toBeLessThanOrEqual(86_400_000);
  });

  it('is doubted again if the mark is in the future: the clock was set back since', async () => {
    await q.hold('a');
    await q.admin.zadd(q.key('workers'), 1, WORKER);
    await q.admin.hset(q.key('worker'), 'doubt', `1 ${(await q.now()) + 3_600_000}`);
    expect(await again()).toEqual({ kind: 'doubted', againInMs: BEAT_MS });
  });
});

describe('the jobs that it held', () => {
  it('go to the head of the line after the first stall, the oldest first', async () => {
    await q.hold('b', 'c', 'a');
    await q.add('next');
    const answer = await loseAndRecover();
    expect(answer).toEqual({
      kind: 'recovered',
      waiting: ['a', 'b', 'c'],
      suspects: [],
      dead: [],
      cancelled: [],
      more: false,
    });
    expect(await q.list('wait')).toEqual(['a', 'b', 'c', 'next']);
    expect(await q.hash('stalls')).toEqual({ a: '1', b: '1', c: '1' });
    const gone = ['attempts', 'active', 'worker', 'workers'] as const;
    expect(await q.admin.exists(...gone.map((kind) => q.key(kind)))).toBe(0);
  });

  it('are dead at the first stall if none is allowed', async () => {
    await q.hold('a');
    expect(await loseAndRecover({ maxStalls: 0 })).toMatchObject({ waiting: [], suspects: [], dead: ['a'] });
  });

  it('remove the oldest dead jobs if there are too many', async () => {
    await q.bury('old');
    await q.hold('a');
    await q.admin.zadd(q.key('dead'), (await q.now()) - 50, 'old');
    await leaseIsOver();
    await q.engineWith({ deadMax: 1 }).recover(QUEUE, { ...CALL, maxStalls: 0 });
    expect(await q.zset('dead')).toEqual(['a']);
    expect(await q.engine.admin.get(QUEUE, 'old')).toBeNull();
    expect((await q.events()).at(-1)).toMatchObject({ type: 'removed', id: 'old', reason: 'retention' });
  });

  it('ring no bell if all of them are dead', async () => {
    await q.hold('a');
    await q.wasRung();
    await loseAndRecover({ maxStalls: 0 });
    expect(await q.wasRung()).toBe(false);
  });

  it('go back also if their body is missing, and are reported without a name', async () => {
    await q.hold('a');
    await q.admin.hdel(q.key('jobs'), 'a');
    expect(await loseAndRecover()).toMatchObject({ waiting: ['a'] });
    expect((await q.events()).at(-1)).toMatchObject({ type: 'stalled', id: 'a', name: '' });
  });

  it('are none if the store lost the set; the lease is removed nevertheless', async () => {
    await q.hold('a');
    await q.admin.del(q.key('active'));
    expect(await loseAndRecover()).toMatchObject({ waiting: [], suspects: [], dead: [], more: false });
    expect(await q.admin.exists(q.key('workers'))).toBe(0);
  });
});

describe('the worker afterwards', () => {
  it('is unknown: it can neither settle, claim nor renew under its name', async () => {
    await q.hold('a');
    await loseAndRecover();
    await changingNothing(q, async () => {
      expect((await q.exchange({ want: 5, settled: [completed('a')] })).kind).toBe('unknown-worker');
      expect(await q.engine.beat(QUEUE, WORKER, LEASE_MS)).toEqual({ kind: 'unknown-worker' });
    });
  });

  it('is unknown as soon as the first of several steps was made', async () => {
    await q.add(...Array.from({ length: 501 }, (_, i) => `j${i}`));
    await q.claim(501);
    expect((await loseAndRecover()).more).toBe(true);
    const [held = ''] = await q.admin.smembers(q.key('active'));
    await changingNothing(q, async () => {
      expect((await q.exchange({ settled: [completed(held)] })).kind).toBe('unknown-worker');
      expect(await q.engine.beat(QUEUE, WORKER, LEASE_MS)).toEqual({ kind: 'unknown-worker' });
    });
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: recover.keys,
    except: ['events', 'cancelled'],
    async prepare() {
      await q.bury('buried');
      await q.hold('a', 'b', 'c');
      await q.admin.hset(q.key('stalls'), { b: 1, c: 5 });
      await leaseIsOver();
      const small = q.engineWith({ deadMax: 1 });
      return () => small.recover(QUEUE, CALL);
    },
  });
});
