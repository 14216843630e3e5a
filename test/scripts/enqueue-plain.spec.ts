import { describe, expect, it } from 'vitest';
import { END, enqueuePlain } from '#lib/engine/scripts/adds.js';
import { completed, EVERY_STATE, job, LANE, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes, rememberingLonger } from './unchanged.js';

// The promises of `enqueue` are tested with it: plain new jobs come here, and everything else goes on to `enqueue`.
const q = useQueue();

function plain(
  ids: readonly string[],
  { seq = 1, maxEvents = 100, names = 'work', body = (id: string) => job(id).body } = {},
): Promise<boolean> {
  const text = (of: readonly string[]) => (of.length === 1 ? of[0]! : of.map((one) => one + END).join(''));
  const values = enqueuePlain.encode(
    { ...q.keys.fixed, lane: q.key('lane'), bodies: q.keys.bodies(ids[0]!) },
    {
      seq,
      rememberMs: 10_000,
      maxEvents,
      jobs: ids.length,
      ids: text(ids),
      bodies: text(ids.map(body)),
      names,
    },
    {},
  );
  return q.engine['store'].call(enqueuePlain, values, 5_000);
}

it.each([[['a']], [['a', 'b', 'c']]])(
  'stores %j at the end of the line, rings, and writes an event',
  async (ids) => {
    await q.add('before');
    await q.wasRung();
    expect(await plain(ids, { seq: 2 })).toBe(true);
    expect(await q.list('wait')).toEqual(['before', ...ids]);
    expect(await q.admin.hmget(q.key('jobs'), ...ids)).toEqual(ids.map((id) => job(id).body));
    expect(await q.zset('doorbell')).toEqual(['work']);
    const said = (await q.events()).slice(1);
    expect(said.map(({ type, id, name }) => [type, id, name])).toEqual(
      ids.map((id) => ['added', id, 'work']),
    );
    expect(await q.admin.get(q.key('lane'))).toBe('2\n');
    expect(await q.admin.pttl(q.key('lane'))).toBeGreaterThan(5_000);
  },
);

it('writes the name of each if they differ, and no event if none are kept', async () => {
  await plain(['a', 'b'], { names: 'one\nother' });
  expect((await q.events()).map(({ id, name }) => [id, name])).toEqual([
    ['a', 'one'],
    ['b', 'other'],
  ]);
  await plain(['c'], { seq: 2, maxEvents: 0, names: '' });
  expect(await q.admin.xlen(q.key('events'))).toBe(1);
});

it('takes 1,000 jobs', async () => {
  expect(await plain(Array.from({ length: 1_000 }, (_, i) => `j${i}`))).toBe(true);
  expect(await q.admin.llen(q.key('wait'))).toBe(1_000);
});

it('stores bodies unchanged, whatever they contain', async () => {
  const odd: Record<string, string> = { a: '', b: '\u0001a', c: '%d+\n\n.*', d: 'ä€😀' };
  expect(await plain(Object.keys(odd), { body: (id) => odd[id]! })).toBe(true);
  expect(await q.admin.hgetall(q.key('jobs'))).toEqual(odd);
  expect(await plain(['alone'], { seq: 2, body: () => `what ${END} stands behind` })).toBe(true);
  expect(await q.admin.hget(q.key('jobs'), 'alone')).toBe(`what ${END} stands behind`);
});

it('works after an earlier call of the lane that found duplicates', async () => {
  await q.add('a');
  await q.add('a', 'b');
  expect(await q.admin.get(q.key('lane'))).toBe('2\nwaiting a');
  expect(await rememberingLonger(q, () => plain(['c'], { seq: 2 }))).toBe(false);
  expect(await plain(['c'], { seq: 3 })).toBe(true);
  expect(await q.admin.get(q.key('lane'))).toBe('3\n');
});

describe('leaves the call to `enqueue`, and changes nothing,', () => {
  it('if one of several bodies contains the separator', async () => {
    const body = (id: string) => (id === 'b' ? `x${END}y` : id);
    expect(await changingNothing(q, () => plain(['a', 'b'], { body }))).toBe(false);
  });

  it('if the record of the lane is unreadable', async () => {
    await q.admin.set(q.key('lane'), 'not ours', 'PX', 10_000);
    expect(await rememberingLonger(q, () => plain(['a']))).toBe(false);
  });

  it.each([1, 2])('if the call of this number, or a later one, was made: %i', async (seq) => {
    await q.add('a');
    await q.add('b');
    expect(await rememberingLonger(q, () => plain(['c'], { seq }))).toBe(false);
    expect(await rememberingLonger(q, () => plain(['c', 'd'], { seq }))).toBe(false);
  });

  it.each(EVERY_STATE)('if a job with that id is %s', async (_, bring) => {
    await bring(q);
    const seq = 2;
    expect(await changingNothing(q, () => plain(['x'], { seq }))).toBe(false);
    expect(await changingNothing(q, () => plain(['new', 'x', 'newer'], { seq }))).toBe(false);
  });
});

it('stores it again if the job with that id is gone', async () => {
  await q.hold('x');
  await q.settle(completed('x'));
  expect(await plain(['x'], { seq: 2 })).toBe(true);
});

it('is one call for plain new jobs, and two for others', async () => {
  const { store } = q.engine as unknown as { store: { call: (script: { name: string }) => unknown } };
  const calls: string[] = [];
  const call = store.call.bind(store);
  store.call = (...args) => {
    calls.push(args[0].name);
    return call(...args);
  };
  await q.add('a', 'b');
  await q.add('a', 'c');
  await q.add(job('d', { priority: 1 }));
  await q.add(job('e', { delayMs: 1_000 }));
  expect(calls).toEqual(['enqueue-plain', 'enqueue-plain', 'enqueue', 'enqueue', 'enqueue']);
  expect(await q.admin.get(q.key('lane'))).toBe('4\n');
  expect(q.key('lane')).toContain(LANE);
});

itRefusesWrongTypes(q, {
  keys: enqueuePlain.keys,
  except: ['events'],
  prepare: async () => {
    await q.add('x');
    return () => plain(['a', 'b'], { seq: 2 });
  },
});

itRefusesWrongTypes(q, {
  keys: ['jobs', 'wait', 'meta', 'doorbell', 'lane'],
  prepare: async () => {
    await q.add('x');
    return () =>
      q.engine.enqueue(QUEUE, { lane: LANE, seq: 2, rememberMs: 1000, withinMs: 5_000, jobs: [job('a')] });
  },
});
