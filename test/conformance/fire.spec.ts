import { describe, expect, it } from 'vitest';
import type { FireSchedule, OccurrenceJob } from '#lib/contract/schedule-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { firing, put, seen, tick } from '../scripts/schedules-support.js';
import { completed, dead, job, kept, LEASE_MS, QUEUE, retried, WORKER } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('an occurrence (%s)', (kind) => {
  const t = useEngine(kind);
  const FAR = 4_102_444_800_000;
  const fires = (...calls: FireSchedule[]) => t.engine.schedules.fire(QUEUE, calls);
  /** Fires a schedule as it stands now. */
  const firesNow = async (id: string, jobs: OccurrenceJob[], more: Partial<FireSchedule> = {}) =>
    (await fires(firing(await seen(t, id), jobs, more))).made[0];
  const get = (id: string) => t.engine.admin.get(QUEUE, id);
  const wasRung = async () => (await t.engine.awaitBell([QUEUE], 20)) !== null;
  const says = async () => (await t.events()).map(({ type, id, reason }) => `${type} ${id} ${reason}`.trim());

  it('makes its job, sets the next time, and wakes a worker', async () => {
    const a = await put(t, 'a');
    await wasRung();
    const answer = await fires(firing(a, [tick('a@1', { at: 1_000 })], { nextAt: t.now + 7 }));
    expect(answer).toEqual({ made: [1], due: 0, nextInMs: 7 });
    expect(await get('a@1')).toMatchObject({ body: 'work\n{"of":"a@1"}', state: 'waiting' });
    expect(await seen(t, 'a')).toMatchObject({ nextAt: t.now + 7, fired: 1, lastAt: 1_000, lastJob: 'a@1' });
    expect(await wasRung()).toBe(true);
    expect(await t.events()).toMatchObject([{ number: 1, type: 'added', id: 'a@1', name: 'work' }]);
  });

  it('adds one job, however many processes see that it is due', async () => {
    const call = firing(await put(t, 'a'), [tick('a@1')]);
    const other = t.engineWith();
    const answers = await Promise.all([fires(call), other.schedules.fire(QUEUE, [call]), fires(call)]);
    expect(answers.flatMap(({ made }) => made).filter((made) => made !== null)).toEqual([1]);
    expect((await fires(call)).made).toEqual([null]);
    expect(await t.claim()).toEqual(['a@1']);
    expect(await seen(t, 'a')).toMatchObject({ fired: 1 });
  });

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['put anew', async (id) => put(t, id, { revision: (await seen(t, id)).revision, nextAt: 'keep' })],
    ['paused', (id) => t.engine.schedules.pause(QUEUE, id)],
    ['removed', (id) => t.engine.schedules.remove(QUEUE, id)],
  ])('adds no job if the schedule was %s meanwhile', async (_, change) => {
    const a = await put(t, 'a');
    await change('a');
    expect((await fires(firing(a, [tick('a@1')]))).made).toEqual([null]);
    expect(await get('a@1')).toBeNull();
  });

  it('that was added already counts as added, and is added again once its retention is over', async () => {
    await t.hold('a@1');
    await t.settle(kept('a@1', 1_000, '1'));
    await put(t, 'a');
    expect(await firesNow('a', [tick('a@1', { body: 'other\n' })], { nextAt: 2_000 })).toBe(1);
    expect(await get('a@1')).toMatchObject({ state: 'completed', result: '1' });
    expect(await seen(t, 'a')).toMatchObject({ fired: 1, lastJob: 'a@1', nextAt: 2_000 });
    await t.advance(1_000);
    expect(await firesNow('a', [tick('a@1', { body: 'other\n' })])).toBe(1);
    expect(await get('a@1')).toMatchObject({ state: 'waiting', body: 'other\n', result: null });
  });

  it('lets groups take turns', async () => {
    await put(t, 'a');
    const of = (id: string, group: string) => tick(id, { body: encodeBody('work', t.now, { group }, '1') });
    await firesNow('a', [of('a1', 'a'), of('a2', 'a'), of('b1', 'b')]);
    expect(await t.claim(2)).toEqual(['a1', 'b1']);
    expect(await t.claim(2)).toEqual(['a2']);
  });

  it('goes to the place for its priority and its due time', async () => {
    await put(t, 'a');
    const jobs = [
      tick('later-vip', { dueAt: t.now + 60_000, priority: 3 }),
      tick('later', { dueAt: t.now + 60_000 }),
      tick('vip', { priority: 7 }),
      tick('plain', { dueAt: t.now }),
    ];
    expect(await firesNow('a', jobs)).toBe(4);
    expect((await t.events()).map(({ type, id, delayMs }) => [type, id, delayMs])).toEqual([
      ['added', 'vip', 0],
      ['added', 'plain', 0],
      ['delayed', 'later-vip', 60_000],
      ['delayed', 'later', 60_000],
    ]);
    expect(await t.claim()).toEqual(['plain', 'vip']);
    await t.advance(60_000);
    expect(await t.claim()).toEqual(['later', 'later-vip']);
    expect(await t.engine.admin.audit(QUEUE)).toMatchObject({ violations: [] });
  });

  it('is remembered with the last ten', async () => {
    await put(t, 'a');
    for (let at = 1; at <= 12; at++) await firesNow('a', [tick(`a@${at}`, { at })], { nextAt: at + 1 });
    expect((await seen(t, 'a')).recent).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  it('whose interval counts from the end waits for the end of the last job, and then for the interval', async () => {
    await put(t, 'a');
    const look = (jobs: OccurrenceJob[]) => firesNow('a', jobs, { nextAt: t.now + 250, afterEndMs: 60_000 });
    expect(await look([tick('a@1')])).toBe(1);
    await t.claim();
    await t.advance(250);
    expect(await look([tick('a@2')])).toBe(0);
    expect(await seen(t, 'a')).toMatchObject({ nextAt: t.now + 250, lastJob: 'a@1', fired: 1 });
    await t.settle(retried('a@1', { delayMs: 500 }));
    expect(await look([tick('a@2')])).toBe(0);
    await t.advance(500);
    await t.claim();
    await t.settle(completed('a@1'));
    expect(await look([tick('a@2')])).toBe(0);
    expect(await seen(t, 'a')).toMatchObject({ nextAt: t.now + 60_000, lastJob: null, fired: 1 });
    await t.advance(60_000);
    expect(await look([tick('a@3')])).toBe(1);
    expect(await seen(t, 'a')).toMatchObject({ lastJob: 'a@3', fired: 2 });
  });

  it('whose interval counts from the end is the last one if the plan has no next time', async () => {
    await put(t, 'a');
    const look = (nextAt: number | null) => firesNow('a', [tick('a@1')], { nextAt, afterEndMs: 60_000 });
    expect(await look(t.now + 250)).toBe(1);
    await t.claim();
    await t.settle(completed('a@1'));
    await t.advance(250);
    expect(await look(null)).toBe(0);
    expect(await seen(t, 'a')).toMatchObject({ mode: 'ended', nextAt: null, fired: 1 });
  });

  it('without a job moves the next time, and wakes no worker', async () => {
    await put(t, 'a');
    await wasRung();
    expect(await firesNow('a', [], { nextAt: FAR })).toBe(0);
    expect(await seen(t, 'a')).toMatchObject({ nextAt: FAR, fired: 0, lastAt: null });
    expect(await wasRung()).toBe(false);
    expect(await t.events()).toEqual([]);
  });

  it('of several schedules is sent in one call, each on its own', async () => {
    const [a, b, c] = [await put(t, 'a'), await put(t, 'b'), await put(t, 'c', { nextAt: 1_500 })];
    await t.engine.schedules.pause(QUEUE, 'b');
    const answer = await fires(
      firing(a, [tick('a@1'), tick('a@2')], { nextAt: 1_700 }),
      firing(b, [tick('b@1')]),
      firing(c, [tick('c@1', { body: 'other\n' })], { nextAt: t.now + 60_000 }),
    );
    expect(answer).toEqual({ made: [2, null, 1], due: 1, nextInMs: 60_000 });
    expect((await t.events()).map(({ id, name }) => `${id} ${name}`)).toEqual([
      'a@1 work',
      'a@2 work',
      'c@1 other',
    ]);
  });

  it('may be the last: by its time, or by the limit', async () => {
    await put(t, 'a');
    expect(await firesNow('a', [tick('a@1')], { nextAt: null })).toBe(1);
    expect(await seen(t, 'a')).toMatchObject({ mode: 'ended', nextAt: null, fired: 1 });
    await put(t, 'b');
    expect(await firesNow('b', [tick('b@1')], { limit: 3 })).toBe(1);
    expect(await seen(t, 'b')).toMatchObject({ mode: 'running' });
    expect(await firesNow('b', [tick('b@2'), tick('b@3'), tick('b@4')], { limit: 3, nextAt: 5_000 })).toBe(2);
    expect(await seen(t, 'b')).toMatchObject({ mode: 'ended', fired: 3, lastJob: 'b@3' });
    expect(await get('b@4')).toBeNull();
  });

  /** Possible states of the last job of a schedule when the next occurrence is due. */
  const STATES: Record<string, (id: string) => Promise<unknown>> = {
    async waiting() {},
    active: () => t.claim(),
    async dead() {
      await t.claim();
      await t.settle(dead('a@1'));
    },
    async kept() {
      await t.claim();
      await t.settle(kept('a@1', 60_000));
    },
    async gone() {
      await t.claim();
      await t.settle(completed('a@1'));
    },
  };
  const first = async (more: Partial<OccurrenceJob> = {}) => {
    await put(t, 'a');
    await firesNow('a', [tick('a@1', more)]);
  };

  it.each([
    ['waiting', 0],
    ['active', 0],
    ['dead', 1],
    ['kept', 1],
    ['gone', 1],
  ])('overlapping one that is %s makes %i with skip', async (state, made) => {
    await first();
    await STATES[state]!('a@1');
    expect(await firesNow('a', [tick('a@2', { at: 2_000 })], { overlap: 'skip', nextAt: 3_000 })).toBe(made);
    const lastAt = made === 1 ? 2_000 : 1_000;
    expect(await seen(t, 'a')).toMatchObject({ nextAt: 3_000, fired: 1 + made, lastAt });
    expect((await get('a@2')) !== null).toBe(made === 1);
  });

  it('overlapping makes the first of several with skip, and none beside a delayed one', async () => {
    await put(t, 'a');
    const jobs = [tick('a@1', { dueAt: FAR }), tick('a@2'), tick('a@3')];
    expect(await firesNow('a', jobs, { overlap: 'skip' })).toBe(1);
    expect(await firesNow('a', [tick('a@4')], { overlap: 'skip' })).toBe(0);
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 0, delayed: 1 });
  });

  it.each<[string, Partial<OccurrenceJob>]>([
    ['waits', {}],
    ['waits with a priority', { priority: 5 }],
    ['is delayed', { dueAt: FAR, priority: 5 }],
  ])('overlapping one that %s takes its place with replace', async (_, more) => {
    await first(more);
    expect(await firesNow('a', [tick('a@2')], { overlap: 'replace' })).toBe(1);
    expect(await get('a@1')).toBeNull();
    expect((await says()).slice(1)).toEqual(['removed a@1 replaced', 'added a@2']);
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 1, delayed: 0 });
    expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });

  it('overlapping one that runs cancels it with replace, and waits beside it', async () => {
    await first();
    await t.claim();
    expect(await firesNow('a', [tick('a@2')], { overlap: 'replace' })).toBe(1);
    const beat = await t.engine.beat(QUEUE, WORKER, LEASE_MS);
    expect(beat).toMatchObject({ kind: 'alive', held: 1, cancels: new Map([['a@1', 'replaced']]) });
    await t.settle(retried('a@1'));
    expect(await get('a@1')).toBeNull();
    expect((await says()).at(-1)).toBe('cancelled a@1 replaced');
    expect(await t.engine.admin.cancelled(QUEUE, 'a@1')).toMatchObject({ reason: 'replaced' });
  });

  it('overlapping one that was cancelled leaves its first reason', async () => {
    await first();
    await t.claim();
    expect(await t.engine.admin.cancel(QUEUE, 'a@1', 'asked')).toBe('signalled');
    await firesNow('a', [tick('a@2')], { overlap: 'replace' });
    expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({
      cancels: new Map([['a@1', 'asked']]),
    });
  });

  it('overlapping with replace removes only its own jobs, and adds at the end of the line', async () => {
    await t.add('before', job('vip', { priority: 1 }));
    await first();
    await t.add('behind');
    await firesNow('a', [tick('a@2')], { overlap: 'replace' });
    expect(await t.claim()).toEqual(['before', 'behind', 'a@2', 'vip']);
  });

  it('overlapping with allow adds in any case', async () => {
    await first();
    expect(await firesNow('a', [tick('a@2')])).toBe(1);
    expect(await t.claim()).toEqual(['a@1', 'a@2']);
  });
});

describe.each(ENGINES)('an occurrence in a queue without events (%s)', (kind) => {
  const t = useEngine(kind, { maxEvents: 0 });

  it('adds its job, and writes no event', async () => {
    const call = firing(await put(t, 'a'), [tick('a@1')]);
    expect(await t.engine.schedules.fire(QUEUE, [call])).toMatchObject({ made: [1] });
    expect(await t.engine.lastEvent(QUEUE)).toBe(0);
  });
});
