import { describe, expect, it } from 'vitest';
import type { ExchangeCall } from '#lib/contract/engine.js';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { SEPARATOR } from '#lib/engine/codec/replies.js';
import { claimLimited } from '#lib/engine/scripts/work.js';
import { encodeBody } from '#lib/job/job-record.js';
import { RULES } from '#lib/job/rules.js';
import { completed, job, LEASE_MS, QUEUE, retried, useQueue, WORKER } from './support.js';
import { until } from '../support/wait.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const member = (id: string, group: string) => job(id, { group, body: encodeBody('work', 1, { group }, '') });

/** The script alone, called as the exchange calls it. */
function claim(seq: number, more: Partial<ExchangeCall> = {}) {
  const { store } = q.engine as unknown as { store: RedisStore };
  const { worker = WORKER, want = 9, maySuspect = true, maxBytes = 1_000_000 } = more;
  return store.run(claimLimited, store.keysOfWorker(QUEUE, worker), {
    worker,
    seq,
    pipelined: more.pipelined ? 1 : 0,
    leaseMs: LEASE_MS,
    want,
    maxBytes,
    maySuspect: maySuspect ? 1 : 0,
    perTurn: 1,
    separator: SEPARATOR,
    maxEvents: 1_000,
  });
}

const idsOf = (answer: Awaited<ReturnType<typeof claim>>) =>
  answer.kind === 'claimed' ? answer.claimed.map(({ id }) => id) : answer.kind;

it('is refused for an unknown worker, and for one whose lease was over', async () => {
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

it('a repeated call returns again whether the call found as many as it wanted', async () => {
  await q.exchange({ want: 0 });
  await q.add(...['a', 'b', 'c'].map((id) => member(id, id)));
  for (const [seq, want, supply] of [
    [2, 2, 'more'],
    [3, 2, 'empty'],
    [4, 2, 'empty'],
  ] as const) {
    expect(await claim(seq, { want })).toMatchObject({ supply });
    expect(await claim(seq, { want })).toMatchObject({ supply });
  }
});

describe('a group goes on after a job without a body', () => {
  const begin = async (rule: object) => {
    await q.engine.limits.set(QUEUE, 'g', 'code', rule);
    await q.exchange({ want: 0 });
    await q.add(member('a', 'g'), member('b', 'g'));
  };

  it('that was to start', async () => {
    await begin({ concurrency: 1 });
    await q.admin.hdel(q.keys.bodies('a'), 'a');
    expect(idsOf(await claim(2))).toEqual([]);
    expect(await q.zset('dead')).toEqual(['a']);
    expect(idsOf(await claim(3))).toEqual(['b']);
  });

  it('that kept its slot until its retry, and wakes a worker', async () => {
    await begin({ order: 'strict' });
    expect(idsOf(await claim(2))).toEqual(['a']);
    await q.exchange({ seq: 2, want: 0, settled: [retried('a')] });
    await q.admin.hdel(q.keys.bodies('a'), 'a');
    await q.admin.del(q.key('doorbell'));
    expect(idsOf(await claim(3))).toEqual([]);
    expect(await q.zset('dead')).toEqual(['a']);
    expect(await q.zset('slots')).toEqual([]);
    expect(await q.zset('doorbell')).toEqual(['work']);
    expect(idsOf(await claim(4))).toEqual(['b']);
  });

  it('unless a dead job stops it, until that is removed', async () => {
    await begin({ order: 'strict', onDead: 'block' });
    expect(idsOf(await claim(2))).toEqual(['a']);
    await q.exchange({ seq: 2, want: 0, settled: [retried('a')] });
    await q.admin.hdel(q.keys.bodies('a'), 'a');
    expect(idsOf(await claim(3))).toEqual([]);
    expect(idsOf(await claim(4))).toEqual([]);
    await q.engine.admin.remove(QUEUE, 'a');
    expect(idsOf(await claim(5))).toEqual(['b']);
  });
});

it('returns for each job how often it failed, and how many workers it lost', async () => {
  await q.exchange({ want: 0 });
  await q.add(member('a', 'g'), member('b', 'g'), member('c', 'g'));
  await claim(2);
  await q.exchange({ seq: 2, want: 0, settled: [retried('a'), retried('b', { counted: false })] });
  await q.admin.hset(q.key('stalls'), 'b', '2');
  const told = async (seq: number) => {
    const answer = await claim(seq);
    return answer.kind === 'claimed' && answer.claimed.map(({ id, failed, stalls }) => [id, failed, stalls]);
  };
  // One that failed no attempt comes back first.
  const both = [
    ['b', 0, 2],
    ['a', 1, 0],
  ];
  expect(await told(3)).toEqual(both);
  expect(await told(3)).toEqual(both);
  const started = (await q.events())
    .filter(({ type }) => type === 'active')
    .map(({ id, attempt }) => [id, attempt]);
  expect(started.slice(-2)).toEqual([
    ['b', 1],
    ['a', 2],
  ]);
});

it('claims a suspect if its group has a free slot, and skips one whose group is paused', async () => {
  await q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 1 });
  await q.exchange({ want: 0 });
  await q.add(
    ...['a', 'b'].flatMap((group) => [member(`${group}1`, group), member(`${group}2`, group)]),
    'plain',
  );
  // Two were lost twice by workers that fell silent.
  for (const id of ['a1', 'b1']) {
    const line = (await q.hash('lines'))[`g:${id[0]}`]!;
    await q.admin.zrem(q.key('grouped'), id);
    await q.admin.rpush(q.key('suspects'), id);
    await q.admin.zadd(q.key('ready'), 0, line);
  }
  await q.engine.limits.set(QUEUE, 'g:a', 'live', { paused: true });
  // A worker that takes no suspects.
  const first = await claim(2, { maySuspect: false });
  expect(new Set(idsOf(first))).toEqual(new Set(['b2', 'plain']));
  expect(idsOf(await claim(3))).toEqual([]);
  await q.exchange({ seq: 3, want: 0, settled: [completed('b2')] });
  expect(idsOf(await claim(4))).toEqual(['b1']);
  expect(await q.list('suspects')).toEqual(['a1']);
  await q.engine.limits.set(QUEUE, 'g:a', 'live', null);
  await q.add('other');
  expect(idsOf(await claim(5))).toEqual(['a1', 'other']);
});

it('keeps the record of its worker for a day', async () => {
  await q.exchange({ want: 0 });
  await q.add(member('a', 'g'));
  await q.admin.persist(q.key('worker'));
  await claim(2);
  const left = await q.admin.pttl(q.key('worker'));
  expect(left).toBeGreaterThan(86_390_000);
  expect(left).toBeLessThanOrEqual(86_400_000);
});

it('gives each new group a number that no other has, also once numbers start again', async () => {
  await q.add(member('a', 'a'), member('b', 'b'));
  await q.admin.hset(q.key('meta'), 'lines', '0');
  await q.add(member('c', 'c'), member('d', 'd'));
  expect(new Set(Object.values(await q.hash('lines'))).size).toBe(4);
});

it('looks again at the line with the lowest number once a slot of it is free', async () => {
  await q.exchange({ want: 0 });
  await q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 1 });
  await q.admin.hset(q.key('meta'), 'lines', String(RULES.linesMax - 1));
  await q.add(member('a', 'g'), member('b', 'g'));
  expect(await q.hash('lines')).toEqual({ 'g:g': '0000001' });
  expect(idsOf(await claim(2))).toEqual(['a']);
  await q.exchange({ seq: 2, want: 0, settled: [completed('a')] });
  expect(idsOf(await claim(3))).toEqual(['b']);
});

it('makes a job without a body dead that was put into the line by hand', async () => {
  await q.exchange({ want: 0 });
  await q.add(member('a', 'g'));
  await q.admin.rpush(q.key('wait'), 'ghost');
  expect(idsOf(await claim(2))).toEqual(['a']);
  expect(await q.zset('dead')).toEqual(['ghost']);
});

it('leaves jobs that do not fit in the answer, with the turn and the tokens of their line', async () => {
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

it('continues after a job whose body is gone', async () => {
  await q.exchange({ want: 0 });
  await q.add(member('a', 'g'), member('b', 'g'), member('c', 'h'));
  await q.admin.hdel(q.keys.bodies('a'), 'a');
  expect(idsOf(await claim(2))).toEqual(['c', 'b']);
  expect(await q.zset('dead')).toEqual(['a']);
});

it('counts no start of a group for a job whose body is gone', async () => {
  await q.exchange({ want: 0 });
  await q.engine.limits.set(QUEUE, 'g', 'live', {
    rate: { max: 1, per: 60_000, window: 'fixed', burst: 1 },
  });
  await q.add(member('a', 'g'));
  await q.admin.hdel(q.keys.bodies('a'), 'a');
  expect(await claim(2)).toMatchObject({ claimed: [], supply: 'empty' });
  expect(await q.zset('dead')).toEqual(['a']);
  expect(await q.admin.exists(q.key('limitStates'), q.key('lines'))).toBe(0);
});

it('skips and removes lines in `ready` that do not exist', async () => {
  await q.exchange({ want: 0 });
  await q.add(member('a', 'g'), member('b', 'g'));
  await q.admin.zadd(q.key('ready'), 0.5, '0000098', 0.6, '0000099', 0.7, 'stray');
  expect(idsOf(await claim(2, { want: 1 }))).toEqual(['a']);
  expect(await q.zset('ready')).toEqual(Object.values(await q.hash('lines')));
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

it('leaves a group in `ready` while its job runs if many others are ready, and takes it out when it has no slot', async () => {
  await q.exchange({ want: 0 });
  await q.engine.limits.set(QUEUE, 'g', 'live', { order: 'strict' });
  const ids = ['a', 'b', 'c', 'd', 'e'];
  await q.add(...ids.flatMap((id) => [member(id, id), member(id.repeat(2), id)]));
  for (const [i, id] of ids.entries()) expect(idsOf(await claim(i + 2, { want: 1 }))).toEqual([id]);
  expect(await q.zset('ready')).toHaveLength(5);
  await q.exchange({ want: 0, settled: [completed('e')] });
  expect(idsOf(await claim(7, { want: 1 }))).toEqual(['ee']);
  expect(await q.zset('ready')).toHaveLength(1);
});

it.each([
  ['b', 'a', 'c'],
  ['b', 'c', 'a'],
])(
  'finds the running job of the second of two lines that are ready in the order %s, %s',
  async (first, second, third) => {
    await q.exchange({ want: 0 });
    await q.engine.limits.set(QUEUE, 'g', 'live', { order: 'strict' });
    await q.add(...'abcdefghi'.split('').flatMap((id) => [member(id, id), member(id.repeat(2), id)]));
    const lines = await q.hash('lines');
    const before = (...ids: string[]) =>
      q.admin.zadd(q.key('ready'), 'XX', ...ids.flatMap((id, i) => [1 + i, lines[`g:${id}`]!]));
    await q.admin.zadd(q.key('ready'), 'XX', ...Object.values(lines).flatMap((line) => [9, line]));
    await before(second);
    expect(idsOf(await claim(2, { want: 1 }))).toEqual([second]);
    await before(first, second);
    expect(idsOf(await claim(3, { want: 2 }))).toEqual([first, third]);
  },
);

it('claims jobs that were put into the line by hand, from a line that all such jobs share', async () => {
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

it('wakes another worker if more jobs may start, and none if a limit holds the others back', async () => {
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
