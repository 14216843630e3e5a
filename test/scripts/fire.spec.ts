import { describe, expect, it } from 'vitest';
import type { FireSchedule, OccurrenceJob } from '#lib/contract/schedule-verbs.js';
import { fire } from '#lib/engine/scripts/schedules.js';
import { completed, dead, job, kept, LEASE_MS, QUEUE, retried, useQueue, WORKER } from './support.js';
import { firing, put, seen, tick } from './schedules-support.js';
import { changingNothing, itRefusesWrongTypes, without } from './unchanged.js';

const q = useQueue();
const FAR = 4_102_444_800_000;

const fires = (...calls: FireSchedule[]) => q.engine.schedules.fire(QUEUE, calls);
/** Fires a schedule as it stands now. */
const firesNow = async (id: string, jobs: OccurrenceJob[], more: Partial<FireSchedule> = {}) =>
  (await fires(firing(await seen(q, id), jobs, more))).made[0];

describe('an occurrence', () => {
  it('makes its job, sets the next time, and wakes a worker', async () => {
    const a = await put(q, 'a');
    await q.wasRung();
    const call = firing(a, [tick('a@1', { at: 1_000 })], { nextAt: FAR });
    const answer = await fires(call);
    expect(answer).toMatchObject({ made: [1], due: 0 });
    expect(answer.nextInMs).toBeGreaterThan(0);
    expect(await q.list('wait')).toEqual(['a@1']);
    expect((await q.hash('jobs'))['a@1']).toBe('work\n{"of":"a@1"}');
    expect(await seen(q, 'a')).toMatchObject({ nextAt: FAR, fired: 1, lastAt: 1_000, lastJob: 'a@1' });
    expect(await q.wasRung()).toBe(true);
    expect(await q.events()).toMatchObject([{ type: 'added', id: 'a@1', name: 'work' }]);
  });

  it('keeps counters of a newer version, and shows an unknown mode', async () => {
    await put(q, 'a');
    const counted = (await q.hash('firings'))['a']!.split('\n');
    await q.admin.hset(
      q.key('firings'),
      'a',
      [...counted.slice(0, 3), 'half-paused', '', 'more', 'words'].join('\n'),
    );
    expect(await seen(q, 'a')).toMatchObject({ mode: 'half-paused', lastJob: null });
    expect(await firesNow('a', [tick('a@1')])).toBe(1);
    expect((await q.hash('firings'))['a']!.split('\n').slice(4)).toEqual([
      'a@1',
      expect.stringMatching(/^\d+$/),
      'more',
      'words',
    ]);
    expect(await seen(q, 'a')).toMatchObject({ fired: 1, lastJob: 'a@1' });
  });

  it('adds one job, however many processes see that it is due', async () => {
    const a = await put(q, 'a');
    const call = firing(a, [tick('a@1')], { nextAt: 2_000 });
    const answers = await Promise.all([fires(call), fires(call), fires(call)]);
    expect(answers.map(({ made }) => made[0])).toEqual([1, null, null]);
    expect((await changingNothing(q, () => fires(call))).made).toEqual([null]);
    expect(await q.list('wait')).toEqual(['a@1']);
    expect(await q.events()).toHaveLength(1);
  });

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['put anew', async (id) => put(q, id, { revision: (await seen(q, id)).revision, nextAt: 'keep' })],
    ['paused', (id) => q.engine.schedules.pause(QUEUE, id)],
    ['removed', (id) => q.engine.schedules.remove(QUEUE, id)],
    ['moved by hand', (id) => q.admin.zadd(q.key('upcoming'), 999, id)],
  ])('adds no job if the schedule was %s meanwhile', async (_, change) => {
    const a = await put(q, 'a');
    await change('a');
    expect((await changingNothing(q, () => fires(firing(a, [tick('a@1')])))).made).toEqual([null]);
  });

  it('that was added already counts as added', async () => {
    await q.add('a@1');
    await put(q, 'a');
    const ofSchedules = ['upcoming', 'schedules', 'firings', 'scheduleOrder'];
    const before = without(await q.dump(), ...ofSchedules);
    expect(await firesNow('a', [tick('a@1', { body: 'other\n' })])).toBe(1);
    expect(await seen(q, 'a')).toMatchObject({ fired: 1, lastJob: 'a@1', nextAt: 2_000 });
    expect(without(await q.dump(), ...ofSchedules)).toEqual(before);
  });

  it('is added if the retention of the job with its id is over', async () => {
    await q.hold('a@1');
    await q.settle(kept('a@1', 60_000, '1'));
    await q.admin.zadd(q.key('completed'), 1, 'a@1');
    await put(q, 'a');
    expect(await firesNow('a', [tick('a@1')])).toBe(1);
    expect(await q.list('wait')).toEqual(['a@1']);
    expect(await q.zset('completed')).toEqual([]);
  });

  it('goes to the place for its priority and its due time', async () => {
    await put(q, 'a');
    const now = await q.now();
    const jobs = [
      tick('later', { dueAt: now + 60_000 }),
      tick('later-vip', { dueAt: now + 60_000, priority: 3 }),
      tick('vip', { priority: 7 }),
      tick('plain'),
    ];
    await q.wasRung();
    expect(await firesNow('a', jobs)).toBe(4);
    expect(await q.list('wait')).toEqual(['plain']);
    expect(await q.zset('prioritized')).toEqual(['vip']);
    expect(await q.zset('delayed')).toEqual(['later', 'later-vip']);
    expect(await q.hash('priorities')).toEqual({ 'later-vip': '3' });
    const events = await q.events();
    expect(events.map(({ type, id }) => `${type} ${id}`)).toEqual([
      'added vip',
      'added plain',
      'delayed later',
      'delayed later-vip',
    ]);
    expect(events[2]!.delayMs).toBeGreaterThan(50_000);
    expect(await q.engine.admin.audit(QUEUE)).toMatchObject({ violations: [] });
  });

  it('without a job moves the next time, and wakes no worker', async () => {
    await put(q, 'a');
    await q.wasRung();
    expect(await firesNow('a', [], { nextAt: FAR })).toBe(0);
    expect(await seen(q, 'a')).toMatchObject({ nextAt: FAR, fired: 0, lastAt: null });
    expect(await q.wasRung()).toBe(false);
    expect(await q.events()).toEqual([]);
  });
});

it('several schedules are sent in one call, each on its own', async () => {
  const [a, b, c] = [await put(q, 'a'), await put(q, 'b'), await put(q, 'c', { nextAt: 1_500 })];
  await q.engine.schedules.pause(QUEUE, 'b');
  const now = await q.now();
  const answer = await fires(
    firing(a, [tick('a@1'), tick('a@2')], { nextAt: 1_700 }),
    firing(b, [tick('b@1')]),
    firing(c, [tick('c@1', { body: 'other\n' })], { nextAt: now + 60_000 }),
  );
  expect(answer).toMatchObject({ made: [2, null, 1], due: 1 });
  expect(answer.nextInMs).toBeGreaterThan(50_000);
  expect(await q.list('wait')).toEqual(['a@1', 'a@2', 'c@1']);
  expect((await q.events()).map(({ id, name }) => `${id} ${name}`)).toEqual([
    'a@1 work',
    'a@2 work',
    'c@1 other',
  ]);
});

describe('an end', () => {
  it('comes with the last time', async () => {
    await put(q, 'a');
    expect(await firesNow('a', [tick('a@1')], { nextAt: null })).toBe(1);
    expect(await seen(q, 'a')).toMatchObject({ mode: 'ended', nextAt: null, fired: 1 });
    expect(await q.zset('upcoming')).toEqual([]);
  });

  it('comes with the last job of the limit, and no job beyond it', async () => {
    await put(q, 'a');
    expect(await firesNow('a', [tick('a@1')], { limit: 3 })).toBe(1);
    expect(await seen(q, 'a')).toMatchObject({ mode: 'running' });
    expect(await firesNow('a', [tick('a@2'), tick('a@3'), tick('a@4')], { limit: 3, nextAt: 5_000 })).toBe(2);
    expect(await seen(q, 'a')).toMatchObject({ mode: 'ended', fired: 3, lastJob: 'a@3' });
    expect(await q.list('wait')).toEqual(['a@1', 'a@2', 'a@3']);
  });
});

/** How the last job of a schedule may be when the next occurrence comes. */
const STATES: Record<string, (id: string) => Promise<unknown>> = {
  async waiting() {},
  async active() {
    await q.claim();
  },
  async dead() {
    await q.claim();
    await q.settle(dead('a@1'));
  },
  async kept() {
    await q.claim();
    await q.settle(kept('a@1', 60_000));
  },
  async gone() {
    await q.claim();
    await q.settle(completed('a@1'));
  },
};

describe('overlap', () => {
  const first = async (more: Partial<OccurrenceJob> = {}) => {
    await put(q, 'a');
    await firesNow('a', [tick('a@1', more)]);
  };

  it.each([
    ['waiting', 0],
    ['active', 0],
    ['dead', 1],
    ['kept', 1],
    ['gone', 1],
  ])('skip: after one that is %s it makes %i', async (state, made) => {
    await first();
    await STATES[state]!('a@1');
    expect(await firesNow('a', [tick('a@2', { at: 2_000 })], { overlap: 'skip', nextAt: 3_000 })).toBe(made);
    expect(await seen(q, 'a')).toMatchObject({
      nextAt: 3_000,
      fired: 1 + made,
      lastAt: made ? 2_000 : 1_000,
    });
    expect('a@2' in (await q.hash('jobs'))).toBe(made === 1);
  });

  it('skip: of several occurrences only the first makes one', async () => {
    await put(q, 'a');
    expect(await firesNow('a', [tick('a@1'), tick('a@2'), tick('a@3')], { overlap: 'skip' })).toBe(1);
    expect(await q.list('wait')).toEqual(['a@1']);
  });

  it('skip: one that is delayed also counts', async () => {
    await first({ dueAt: FAR });
    expect(await firesNow('a', [tick('a@2')], { overlap: 'skip' })).toBe(0);
  });

  it.each<[string, Partial<OccurrenceJob>]>([
    ['waits', {}],
    ['waits with a priority', { priority: 5 }],
    ['is delayed', { dueAt: FAR, priority: 5 }],
  ])('replace: one that %s is removed for the next', async (_, more) => {
    await first(more);
    expect(await firesNow('a', [tick('a@2')], { overlap: 'replace' })).toBe(1);
    expect(Object.keys(await q.hash('jobs'))).toEqual(['a@2']);
    expect(await q.list('wait')).toEqual(['a@2']);
    expect(await q.admin.exists(q.key('delayed'), q.key('prioritized'), q.key('priorities'))).toBe(0);
    expect((await q.events()).slice(1)).toMatchObject([
      { type: 'removed', id: 'a@1', name: 'work', reason: 'replaced' },
      { type: 'added', id: 'a@2' },
    ]);
  });

  it('replace: also one that stalled before, with all its data', async () => {
    await first();
    await q.claim();
    await q.admin.hset(q.key('stalls'), 'a@1', 2);
    await q.admin.hset(q.key('attempts'), 'a@1', 1);
    await q.admin.srem(q.key('active'), 'a@1');
    await q.admin.rpush(q.key('suspects'), 'a@1');
    expect(await firesNow('a', [tick('a@2')], { overlap: 'replace' })).toBe(1);
    expect(await q.admin.exists(q.key('suspects'), q.key('stalls'), q.key('attempts'))).toBe(0);
  });

  it('replace: also one of the same call, with its priority', async () => {
    await put(q, 'a');
    const ticks = ['a@1', 'a@2'].map((id) => tick(id, { dueAt: FAR, priority: 3 }));
    expect(await firesNow('a', ticks, { overlap: 'replace' })).toBe(2);
    expect(await q.hash('priorities')).toEqual({ 'a@2': '3' });
  });

  it('replace: one that runs is cancelled, and the next one waits', async () => {
    await first();
    await q.claim();
    expect(await firesNow('a', [tick('a@2')], { overlap: 'replace' })).toBe(1);
    expect(await q.hash('toCancel')).toEqual({ 'a@1': 'replaced' });
    expect(await q.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({ kind: 'alive', held: 1 });
    await q.settle(retried('a@1'));
    expect(Object.keys(await q.hash('jobs'))).toEqual(['a@2']);
    expect((await q.events()).at(-1)).toMatchObject({ type: 'cancelled', id: 'a@1', reason: 'replaced' });
  });

  it('replace: the first reason to cancel one stays', async () => {
    await first();
    await q.claim();
    await q.admin.hset(q.key('toCancel'), 'a@1', 'asked');
    await firesNow('a', [tick('a@2')], { overlap: 'replace' });
    expect(await q.hash('toCancel')).toEqual({ 'a@1': 'asked' });
  });

  it('replace: removes only its own jobs', async () => {
    await q.add('before', job('vip', { priority: 1 }));
    await first();
    await q.add('behind');
    await firesNow('a', [tick('a@2')], { overlap: 'replace' });
    expect(await q.list('wait')).toEqual(['before', 'behind', 'a@2']);
    expect(await q.zset('prioritized')).toEqual(['vip']);
  });

  it('allow: adds in any case', async () => {
    await first();
    expect(await firesNow('a', [tick('a@2')])).toBe(1);
    expect(await q.list('wait')).toEqual(['a@1', 'a@2']);
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: fire.keys,
    except: ['events'],
    async prepare() {
      const a = await put(q, 'a');
      return () =>
        fires(
          firing(a, [tick('a@1'), tick('a@2', { dueAt: FAR, priority: 2 }), tick('a@3', { priority: 1 })]),
        );
    },
  });
});
