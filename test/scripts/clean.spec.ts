import { describe, expect, it } from 'vitest';
import { clean } from '#lib/engine/scripts/upkeep.js';
import type { CleanCall } from '#lib/contract/upkeep-verbs.js';
import { useServer } from '../support/server.js';
import { completed, dead, job, kept, QUEUE, released, retried, useQueue, WORKER } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

// Its own server, because the calls of scripts are counted.
const q = useQueue({ server: useServer() });

type State = CleanCall['state'];
const STATES: State[] = ['waiting', 'delayed', 'completed', 'dead'];

const cleaning = async (state: State, more: Partial<CleanCall> = {}) =>
  (await q.engine.upkeep.clean(QUEUE, { state, olderThanMs: 0, limit: 1_000, ...more })).removed;
const removing = async (which: Parameters<typeof q.engine.upkeep.removeDead>[1]) =>
  (await q.engine.upkeep.removeDead(QUEUE, which)).removed;

/** A job as the library writes it, added this long ago. */
async function aged(id: string, agoMs: number, more: Parameters<typeof job>[1] = {}) {
  const at = (await q.now()) - agoMs;
  return job(id, { ...more, body: `work\n${at.toString(36)}\n\n{"of":1}` });
}

/** Jobs in every state, with all keys they may have. */
async function fill(): Promise<void> {
  await q.hold('kept', 'buried', 'again', 'ranked');
  await q.note('kept', 'buried', 'again', 'ranked');
  await q.settle(
    retried('again', { delayMs: 60_000, priority: 3 }),
    retried('ranked', { priority: 3 }),
    released('buried'),
  );
  await q.settle(kept('kept', 60_000, '1'));
  await q.bury('buried');
  await q.hold('active');
  await q.add('waiting');
}

it.each([
  ['waiting', ['waiting', 'ranked']],
  ['delayed', ['again']],
  ['completed', ['kept']],
  ['dead', ['buried']],
] as const)(
  'removes %s jobs with all their data, reports it by events, and leaves the others',
  async (state, ids) => {
    await fill();
    // Holding other jobs has taken it from the line.
    await q.engine.release(QUEUE, { worker: WORKER, ids: ['ranked'], leave: false });
    const before = await q.engine.admin.counts(QUEUE);
    const said = (await q.events()).length;
    const removed = await cleaning(state);
    expect(removed.toSorted()).toEqual([...ids].toSorted());
    expect(await q.engine.admin.counts(QUEUE)).toEqual({ ...before, [state]: 0 });
    for (const id of ids) expect(JSON.stringify(await valuesOf())).not.toContain(`"${id}"`);
    expect((await q.events()).slice(said)).toEqual(
      removed.map((id) => expect.objectContaining({ type: 'removed', id, name: 'work', reason: 'asked' })),
    );
    expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
    expect(await changingNothing(q, () => cleaning(state))).toEqual([]);
  },
);

/** Every value of the queue, without events and remembered calls. */
async function valuesOf(): Promise<unknown> {
  const all = Object.entries(await q.dump());
  return all.filter(([key]) => !/^(events|lane|worker:)/.test(key)).map(([, { value }]) => value);
}

describe('removes those that are old enough', () => {
  it('waiting: also suspects', async () => {
    await q.add(await aged('a', 90_000), await aged('b', 10_000));
    await q.admin.lmove(q.key('wait'), q.key('suspects'), 'RIGHT', 'LEFT');
    await q.admin.lmove(q.key('wait'), q.key('suspects'), 'RIGHT', 'LEFT');
    expect(await cleaning('waiting', { olderThanMs: 60_000 })).toEqual(['a']);
    expect(await q.list('suspects')).toEqual(['b']);
  });

  it('completed: by when they ended, however long they are kept', async () => {
    await q.hold('a', 'b');
    await q.settle(kept('a', 600_000, '1'), kept('b', 60_000, '1'));
    const record = (await q.hash('results'))['a']!;
    const ended = (await q.now()) - 90_000;
    await q.admin.hset(q.key('results'), 'a', `${ended}${record.slice(record.indexOf('\n'))}`);
    expect(await cleaning('completed', { olderThanMs: 60_000 })).toEqual(['a']);
    expect(await q.zset('completed')).toEqual(['b']);
  });

  it.each(STATES.slice(0, 3))('%s: none whose age is unknown, unless any age is allowed', async (state) => {
    await q.hold('kept', 'dead');
    await q.settle(kept('kept', 60_000), dead('dead'));
    await q.add('waiting', job('delayed', { delayMs: 9_000 }));
    await q.admin.hset(q.key('results'), 'kept', 'not ours');
    expect(await changingNothing(q, () => cleaning(state, { olderThanMs: 1 }))).toEqual([]);
    expect(await cleaning(state)).toHaveLength(1);
  });
});

it.each(STATES)('removes at most as many %s jobs as asked for, the first ones first', async (state) => {
  const ids = ['a', 'b', 'c', 'd', 'e'];
  if (state === 'delayed') for (const id of ids) await q.add(job(id, { delayMs: 60_000 }));
  else if (state === 'waiting') await q.add(...ids);
  else if (state === 'dead') await q.bury(...ids);
  else {
    await q.hold(...ids);
    await q.settle(...ids.map((id) => kept(id, 60_000)));
  }
  expect(await cleaning(state, { limit: 2 })).toEqual(['a', 'b']);
  expect(await cleaning(state, { limit: 2 })).toEqual(['c', 'd']);
  expect(await cleaning(state, { limit: 0 })).toEqual([]);
  expect(await cleaning(state, { limit: 2 })).toEqual(['e']);
  expect(await cleaning(state, { limit: 2 })).toEqual([]);
});

it.each(STATES.slice(1))('needs one call for a few %s jobs', async (state) => {
  // The first call loads the script.
  await cleaning(state);
  await fill();
  await q.admin.config('RESETSTAT');
  expect(await cleaning(state)).toHaveLength(1);
  expect(await q.admin.info('commandstats')).toContain('cmdstat_evalsha:calls=1,');
});

it('takes as many steps as it needs, also through a long line, whose order it keeps', async () => {
  const old = await aged('', 90_000);
  const young = await aged('', 0);
  const ids = Array.from({ length: 2_600 }, (_, i) => `j${i}`);
  const isOld = (id: string) => Number(id.slice(1)) % 3 !== 0;
  await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, isOld(id) ? old.body : young.body]));
  await q.admin.rpush(q.key('wait'), ...ids);
  const removed: string[] = [];
  for (let more = 1; more > 0;) {
    const some = await cleaning('waiting', { olderThanMs: 60_000 });
    expect(some.length).toBeLessThanOrEqual(1_000);
    more = some.length;
    removed.push(...some);
  }
  // It stops after 200 jobs in a row that are too young. One job of three is too young, so it stops near the 600th.
  expect(removed).toEqual(ids.filter(isOld).slice(0, removed.length));
  expect(removed.length).toBeGreaterThanOrEqual(390);
  const gone = new Set(removed);
  expect(await q.list('wait')).toEqual(ids.filter((id) => !gone.has(id)));
  expect(await cleaning('waiting')).toHaveLength(1_000);
});

it('is correct if others act meanwhile: a worker claims between the steps', async () => {
  await q.add('a', 'b', 'c');
  expect(await cleaning('waiting', { limit: 1 })).toEqual(['a']);
  expect(await q.claim(1)).toEqual(['b']);
  expect(await cleaning('waiting')).toEqual(['c']);
  expect((await q.settle(completed('b'))).lost).toEqual([]);
});

describe('removing dead jobs', () => {
  it('removes those that match, also corrupt ones', async () => {
    await q.add(job('a', { name: 'one' }), job('b', { name: 'two' }), job('c', { name: 'one' }));
    await q.admin.hdel(q.key('jobs'), 'b');
    await q.claim();
    await q.settle(dead('a'), dead('c'));
    expect(await removing({ reason: 'corrupt', limit: 5 })).toEqual(['b']);
    expect(await removing({ name: 'one', limit: 1 })).toHaveLength(1);
    expect(await removing({ limit: 5 })).toHaveLength(1);
    expect(await q.admin.exists(q.key('dead'), q.key('jobs'), q.key('failures'))).toBe(0);
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: clean.keys,
    except: ['events'],
    async prepare() {
      await fill();
      return () => cleaning('dead');
    },
  });
});
