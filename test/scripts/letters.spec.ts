import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LETTERED_JOBS, type KeyName } from '#lib/engine/keys.js';
import { completed, dead, job, kept, QUEUE, released, retried, useQueue, WORKER } from './support.js';
import { changingNothing } from './unchanged.js';

// Bodies of jobs whose ids end in a letter are kept in the hash of that letter. The promises of the scripts hold for
// any mix of hashes in one call.
const q = useQueue();

const made = (n: number, letter: string) => `0mwtqbbga5wm6p6${String(n).padStart(3, '0')}${letter}`;
const many = (count: number, letterOf: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => made(n, letterOf(n)));
/** Ids of three hashes, in mixed order. */
const MIXED = [made(1, 'B'), 'own', made(2, 'Z'), made(3, 'B'), made(4, 'A'), 'other'];

/** The ids in each hash of bodies. */
async function whereBodiesAre(): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const kind of ['jobs', ...LETTERED_JOBS] as const) {
    const ids = await q.admin.hkeys(q.key(kind));
    if (ids.length > 0) found[kind] = ids.toSorted();
  }
  return found;
}

const byLetter = (ids: readonly string[]): Record<string, string[]> => {
  const expected: Record<string, string[]> = {};
  for (const id of ids.toSorted()) (expected[`jobs${/^.{18}([A-Z])$/.exec(id)?.[1] ?? ''}`] ??= []).push(id);
  return expected;
};

const claimedWithBodies = async () => {
  const { claimed } = await q.exchanged({ want: 1_000 });
  for (const { id, body } of claimed) expect(body).toBe(job(id).body);
  return claimed.map(({ id }) => id);
};

describe('an add stores bodies in the hash of their ids', () => {
  const cases: [string, (string | ReturnType<typeof job>)[]][] = [
    ['one', [made(1, 'K')]],
    ['several of one letter', many(50, () => 'K')],
    ['several of different letters', MIXED],
    ['so many of one letter that they go past Lua', many(300, () => 'K')],
    ['as many of different letters', many(300, (n) => (n < 120 ? 'K' : 'L'))],
    ['delayed ones', MIXED.map((id) => job(id, { delayMs: 60_000 }))],
    ['delayed ones of one letter', many(20, () => 'C').map((id) => job(id, { delayMs: 60_000 }))],
    ['those with a priority', MIXED.map((id) => job(id, { priority: 1 }))],
    ['those with a priority and one letter', many(20, () => 'C').map((id) => job(id, { priority: 1 }))],
  ];

  it.each(cases)('%s', async (_, jobs) => {
    const ids = jobs.map((one) => (typeof one === 'string' ? one : one.id));
    // The engine uses transactions once the connection has shown that it can run them.
    await q.add('first');
    await q.engine.admin.remove(QUEUE, 'first');
    expect(await q.add(...jobs)).toEqual([]);
    expect(await whereBodiesAre()).toEqual(byLetter(ids));
    const isDelayed = (await q.engine.admin.counts(QUEUE)).delayed > 0;
    for (const id of isDelayed ? ids : [])
      expect(await q.engine.admin.promoteNow(QUEUE, id)).toBe('promoted');
    const got = await claimedWithBodies();
    expect(got).toEqual(ids);
    const { lost } = await q.settle(...got.map((id) => completed(id)));
    expect(lost).toEqual([]);
    expect(await whereBodiesAre()).toEqual({});
  });

  it('and returns duplicates, whichever hash they are in', async () => {
    await q.add(MIXED[0]!, MIXED[1]!, MIXED[2]!);
    expect(await q.add(...MIXED)).toEqual(MIXED.slice(0, 3));
    expect(await q.add(job(MIXED[4]!, { delayMs: 5 }), job('new', { delayMs: 5 }))).toEqual([MIXED[4]]);
    expect(await whereBodiesAre()).toEqual(byLetter([...MIXED, 'new']));
  });

  it('of any id, as the client reads it', async () => {
    const unit = fc.constantFrom('a', 'Z', 'A', '[', '@', 'é', '0');
    const ids = fc.uniqueArray(fc.string({ unit, minLength: 17, maxLength: 20 }), {
      minLength: 1,
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(ids, async (drawn) => {
        await q.add(...drawn.map((id) => job(id, { delayMs: 60_000 })));
        for (const id of drawn) expect(await q.admin.hexists(q.keys.bodies(id), id)).toBe(1);
        for (const id of drawn)
          expect(await q.engine.admin.get(QUEUE, id)).toMatchObject({ state: 'delayed' });
        for (const id of drawn) expect(await q.engine.admin.remove(QUEUE, id)).toBe('removed');
        expect(await whereBodiesAre()).toEqual({});
      }),
      { numRuns: 20, seed: 1 },
    );
  });
});

describe('of a batch from several hashes', () => {
  it('a repeated exchange gives the same bodies', async () => {
    await q.add(...MIXED);
    const first = await q.exchanged({ seq: 1, want: 10 });
    const again = await q.exchanged({ seq: 1, want: 10 });
    expect(again.claimed).toEqual(first.claimed);
    expect(first.claimed.map(({ id }) => id)).toEqual(MIXED);
  });

  it('jobs settled in different ways leave the correct data', async () => {
    await q.hold(...MIXED);
    const [b1, own, z, b3, a, other] = MIXED as [string, string, string, string, string, string];
    const settled = [
      completed(b1),
      completed(own),
      kept(z, 60_000, '1'),
      dead(b3),
      retried(a),
      released(other),
    ];
    expect((await q.exchanged({ settled })).lost).toEqual([]);
    expect(await whereBodiesAre()).toEqual(byLetter([z, b3, a, other]));
    expect(await claimedWithBodies()).toEqual([other, a]);
    const page = await q.engine.admin.jobs(QUEUE, { state: 'dead', limit: 5, after: null });
    expect(page.jobs).toMatchObject([{ id: b3, body: job(b3).body }]);
    expect(await q.engine.admin.get(QUEUE, z)).toMatchObject({ state: 'completed', body: job(z).body });
  });

  it('bodies that were removed by hand are distinguished from those in other hashes', async () => {
    await q.add(...MIXED);
    await q.admin.hdel(q.key('jobsB'), MIXED[3]!);
    expect(await claimedWithBodies()).toEqual(MIXED.filter((id) => id !== MIXED[3]));
    expect(await q.zset('dead')).toEqual([MIXED[3]]);
    expect(await q.hash('jobsB')).toEqual({ [MIXED[0]!]: job(MIXED[0]!).body, [MIXED[3]!]: '' });
  });

  it('dead jobs are retried, and are removed by clean', async () => {
    await q.bury(...MIXED);
    expect((await q.engine.upkeep.retryDead(QUEUE, { ids: [MIXED[0]!, MIXED[1]!] })).retried).toHaveLength(2);
    expect((await claimedWithBodies()).toSorted()).toEqual([MIXED[0]!, MIXED[1]!].toSorted());
    const { removed } = await q.engine.upkeep.clean(QUEUE, { state: 'dead', olderThanMs: 0, limit: 100 });
    expect(removed.toSorted()).toEqual(MIXED.slice(2).toSorted());
    expect(await whereBodiesAre()).toEqual(byLetter(MIXED.slice(0, 2)));
  });

  it('dead and kept jobs beyond the maximum are deleted with their bodies', async () => {
    const engine = q.engineWith({ deadMax: 1, completedMax: 1 });
    await q.hold(...MIXED);
    const settled = [
      ...MIXED.slice(0, 3).map((id) => kept(id, 60_000)),
      ...MIXED.slice(3).map((id) => dead(id)),
    ];
    await q.exchange({ settled }, engine);
    const left = [...(await q.zset('completed')), ...(await q.zset('dead'))];
    expect(left).toHaveLength(2);
    expect(await whereBodiesAre()).toEqual(byLetter(left));
  });

  it('cancelled jobs end, and their events have their names', async () => {
    await q.hold(MIXED[0]!, MIXED[1]!);
    await q.add(MIXED[2]!);
    expect(await q.engine.admin.cancel(QUEUE, MIXED[2]!, 'why')).toBe('cancelled');
    for (const id of MIXED.slice(0, 2))
      expect(await q.engine.admin.cancel(QUEUE, id, 'why')).toBe('signalled');
    await q.engine.release(QUEUE, { worker: WORKER, ids: MIXED.slice(0, 2), leave: false });
    expect(await whereBodiesAre()).toEqual({});
    const ended = (await q.events()).filter(({ type }) => type === 'cancelled');
    expect(ended.map(({ id, name }) => [id, name])).toEqual(
      [MIXED[2]!, MIXED[0]!, MIXED[1]!].map((id) => [id, 'work']),
    );
  });

  it('an audit finds all of them, in one script and by pages, and a repair fixes the damaged ones', async () => {
    await q.add(...MIXED);
    expect(await q.engine.admin.audit(QUEUE)).toMatchObject({ checked: MIXED.length, violations: [] });
    await q.admin.del(q.key('wait'));
    await q.admin.hdel(q.key('jobsB'), MIXED[0]!);
    await q.admin.rpush(q.key('wait'), MIXED[0]!);
    const { repairs } = await q.engine.admin.repair(QUEUE, 5);
    expect(repairs.map(({ did, id }) => `${did} ${id}`).toSorted()).toEqual(
      [`buried ${MIXED[0]}`, ...MIXED.slice(1).map((id) => `lined-up ${id}`)].toSorted(),
    );
    expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
    expect((await claimedWithBodies()).toSorted()).toEqual(MIXED.slice(1).toSorted());
  });

  it('an audit of more than one script looks at reads every hash', async () => {
    for (let call = 0; call < 11; call++) {
      const ids = Array.from({ length: 1_000 }, (_, n) => `${call}${made(n, 'ABC'[n % 3]!).slice(1)}`);
      await q.add(...ids);
    }
    await q.admin.hset(q.key('jobsC'), made(7, 'C').replace('0', 'x'), job('x').body);
    const { checked, violations } = await q.engine.admin.audit(QUEUE);
    expect(checked).toBe(11_001);
    expect(violations).toMatchObject([{ kind: 'no-place', id: made(7, 'C').replace('0', 'x') }]);
  });

  it('nothing is left if the queue is obliterated', async () => {
    await q.add(...MIXED);
    expect(await q.engine.admin.obliterate(QUEUE, true)).toBe('obliterated');
    expect(await whereBodiesAre()).toEqual({});
  });
});

describe('if the hash of a letter is of another type', () => {
  const refusal = { code: 'GODWIT_REDIS_REFUSED', reply: 'WRONGTYPE', applied: 'no' };
  const misuse = async (kind: KeyName) => {
    await q.admin.del(q.key(kind));
    await q.admin.set(q.key(kind), 'not ours');
  };

  it.each<[string, ReturnType<typeof job>[]]>([
    ['one', [job(made(1, 'Z'))]],
    ['several', MIXED.map((id) => job(id))],
    ['many', many(300, () => 'Z').map((id) => job(id))],
    ['delayed ones', MIXED.map((id) => job(id, { delayMs: 5 }))],
  ])('adding %s changes nothing', async (_, jobs) => {
    await q.add('first');
    await misuse('jobsZ');
    await changingNothing(q, () => expect(q.add(...jobs)).rejects.toMatchObject(refusal));
  });

  it('settling changes nothing', async () => {
    await q.hold(made(1, 'Z'), made(2, 'Z'));
    await misuse('jobsZ');
    const settled = [completed(made(1, 'Z')), completed(made(2, 'Z'))];
    await changingNothing(q, () => expect(q.exchange({ settled })).rejects.toMatchObject(refusal));
  });

  it('claiming reports it, restores the places of the jobs, and keeps the settlements', async () => {
    await q.hold('done');
    await q.add(job('p', { priority: 3 }), job(MIXED[4]!, { priority: 1 }), ...MIXED.slice(0, 4));
    await q.admin.rpush(q.key('suspects'), 'suspect');
    await q.admin.hset(q.key('jobs'), 'suspect', job('suspect').body);
    const lines = async () => [
      await q.list('suspects'),
      await q.list('wait'),
      await q.admin.zrange(q.key('prioritized'), '0', '-1', 'WITHSCORES'),
    ];
    const before = await lines();
    const bodies = await q.hash('jobsZ');
    await misuse('jobsZ');
    const call = { seq: 7, want: 10, settled: [completed('done')] };
    await expect(q.exchange(call)).rejects.toMatchObject({ ...refusal, applied: expect.anything() });
    expect(await lines()).toEqual(before);
    expect(await q.list('active').catch(() => [])).toEqual([]);
    expect(await q.totals()).toEqual({ processed: '1' });
    // The next call repeats this one. It is told that it has settled, and gets no jobs.
    expect(await q.exchange(call)).toMatchObject({ kind: 'exchanged', lost: [], claimed: [] });
    expect(await q.totals()).toEqual({ processed: '1' });

    await q.admin.del(q.key('jobsZ'));
    await q.admin.hset(q.key('jobsZ'), bodies);
    const { claimed } = await q.exchanged({ seq: 8, want: 10 });
    expect(claimed.map(({ id }) => id)).toEqual(['suspect', ...MIXED.slice(0, 4), MIXED[4], 'p']);
  });

  it('dead jobs beyond the maximum stay until they can be read', async () => {
    const engine = q.engineWith({ deadMax: 1 });
    await q.bury(made(1, 'Z'));
    await q.hold('a');
    const bodies = await q.hash('jobsZ');
    await misuse('jobsZ');
    expect(await q.exchange({ settled: [dead('a')] }, engine)).toMatchObject({ lost: [] });
    expect(await q.zset('dead')).toEqual([made(1, 'Z'), 'a']);
    await expect(engine.upkeep.trim(QUEUE)).rejects.toMatchObject(refusal);
    await q.admin.del(q.key('jobsZ'));
    await q.admin.hset(q.key('jobsZ'), bodies);
    expect(await engine.upkeep.trim(QUEUE)).toBe(1);
    expect(await q.zset('dead')).toEqual(['a']);
    expect(await whereBodiesAre()).toEqual({ jobs: ['a'] });
  });
});
