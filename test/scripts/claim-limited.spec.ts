import { describe, expect, it } from 'vitest';
import type { EnqueueJob, ExchangeCall } from '#lib/contract/engine.js';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { SEPARATOR } from '#lib/engine/codec/replies.js';
import { claimLimited } from '#lib/engine/scripts/work.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, job, LEASE_MS, QUEUE, useQueue, WORKER } from './support.js';
import { until } from '../support/wait.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const member = (id: string, group: string, more: Partial<EnqueueJob> = {}) =>
  job(id, { group, body: encodeBody('work', 1, { group }, ''), ...more });

/** The script alone, called as the exchange calls it. */
function claim(seq: number, more: Partial<ExchangeCall> = {}) {
  const { store } = q.engine as unknown as { store: RedisStore };
  const { worker = WORKER, want = 9, maySuspect = true, maxBytes = 1_000_000 } = more;
  return store.run(claimLimited, store.keysOfWorker(QUEUE, worker), {
    worker,
    seq,
    pipelined: more.pipelined ? 1 : 0,
    leaseMs: LEASE_MS,
    recordMs: 600_000,
    want,
    maxBytes,
    maySuspect: maySuspect ? 1 : 0,
    separator: SEPARATOR,
    maxEvents: 1_000,
  });
}

const idsOf = (answer: Awaited<ReturnType<typeof claim>>) =>
  answer.kind === 'claimed' ? answer.claimed.map(({ id }) => id) : answer.kind;

it('is refused to a worker that is not known, and to one whose lease was over', async () => {
  await q.add(member('a', 'g'));
  expect(idsOf(await changingNothing(q, () => claim(1)))).toBe('unknown-worker');
});

it('of a queue without limits changes nothing', async () => {
  await q.exchange({ want: 0 });
  await q.add('a');
  expect(idsOf(await changingNothing(q, () => claim(2)))).toBe('plain');
});

it('answers the last call again, of each of the two sequences, and refuses an older one', async () => {
  await q.exchange({ want: 0 });
  await q.add(...['a', 'b', 'c', 'd'].map((id) => member(id, id)));
  expect(idsOf(await claim(2, { want: 1 }))).toEqual(['a']);
  expect(idsOf(await claim(1, { want: 1, pipelined: true }))).toEqual(['b']);
  expect(idsOf(await changingNothing(q, () => claim(2, { want: 1 })))).toEqual(['a']);
  expect(idsOf(await changingNothing(q, () => claim(1, { want: 1, pipelined: true })))).toEqual(['b']);
  expect(idsOf(await changingNothing(q, () => claim(1)))).toBe('stale');
});

it('leaves what there is no room for in the answer, with its turn and its tokens', async () => {
  await q.exchange({ want: 0 });
  await q.engine.limits.set(QUEUE, 'q', 'live', {
    rate: { max: 10, per: 60_000, window: 'fixed', burst: 10 },
  });
  await q.add(...['a', 'b', 'c'].map((id) => member(id, id)));
  const answer = await claim(2, { maxBytes: 1 });
  expect(answer).toMatchObject({ isCut: true, supply: 'more', held: 1 });
  expect(idsOf(answer)).toEqual(['a']);
  expect(await q.engine.limits.list(QUEUE)).toMatchObject([{ field: 'q', left: 9 }]);
  expect(idsOf(await claim(3))).toEqual(['b', 'c']);
});

it('takes one slot for each job, in a set that Redis does not search from its beginning', async () => {
  await q.exchange({ want: 0 });
  await q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 1 });
  const groups = Array.from({ length: 40 }, (_, i) => String(10 + i));
  await q.add(...groups.map((id) => member(id, id)));
  expect(idsOf(await claim(2, { want: 5 }))).toEqual(groups.slice(0, 5));
  expect(await q.zset('slots')).toEqual(groups.slice(0, 5));
  await q.exchange({ seq: 2, want: 0, settled: groups.slice(0, 5).map((id) => completed(id)) });
  expect(idsOf(await claim(3, { want: 40 }))).toEqual(groups.slice(5));
  expect(await q.zset('slots')).toEqual(groups.slice(5));
  expect(await q.admin.object('ENCODING', q.key('slots'))).toBe('skiplist');
});

it('does not stop at a job whose body is gone', async () => {
  await q.exchange({ want: 0 });
  await q.add(member('a', 'g'), member('b', 'g'), member('c', 'h'));
  await q.admin.hdel(q.keys.bodies('a'), 'a');
  expect(idsOf(await claim(2))).toEqual(['b', 'c']);
  expect(await q.zset('dead')).toEqual(['a']);
});

it.each(['sliding', 'fixed', 'bucket'] as const)(
  'drops an empty line and the state of its rate once its starts no longer count, by a %s window',
  async (window) => {
    await q.exchange({ want: 0 });
    await q.engine.limits.set(QUEUE, 'g', 'live', { rate: { max: 5, per: 50, window, burst: 1 } });
    await q.add(member('a', 'g'));
    expect(idsOf(await claim(2))).toEqual(['a']);
    await q.exchange({ want: 0, settled: [completed('a')] });
    let seq = 3;
    await until(async () => {
      await claim(seq++);
      return (await q.admin.exists(q.key('lines'), q.key('limitStates'), q.key('resting'))) === 0;
    });
    expect(await q.admin.exists(q.key('lineStates'), q.key('ready'), q.key('slots'))).toBe(0);
  },
);

it('claims what somebody put into the line by hand, in a line that all such jobs share', async () => {
  await q.exchange({ want: 0 });
  await q.add(member('a', 'g'), job('x'), job('y', { priority: 3 }));
  expect(
    idsOf(await claim(2))
      .toString()
      .split(',')
      .toSorted(),
  ).toEqual(['a', 'x', 'y']);
  expect(await q.zset('grouped')).toEqual([]);
});

it('wakes another worker where more may start, and none where a limit holds the rest back', async () => {
  await q.exchange({ want: 0 });
  await q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 1 });
  await q.add(member('a', 'g'), member('b', 'g'), member('c', 'h'));
  await q.wasRung();
  await claim(2, { want: 1 });
  expect(await q.wasRung()).toBe(true);
  await claim(3, { want: 1 });
  expect(await q.wasRung()).toBe(false);
  await q.exchange({ want: 0, settled: [completed('a')] });
  expect(await q.wasRung()).toBe(true);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: claimLimited.keys,
    hasSlots: true,
    except: ['events', 'delayed'],
    async prepare() {
      await q.exchange({ want: 0 });
      await q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 1 });
      await q.add(member('a', 'g'), member('b', 'h'), job('p', { priority: 1 }));
      return () => claim(2);
    },
  });
});
