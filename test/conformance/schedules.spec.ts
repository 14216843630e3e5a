import { describe, expect, it } from 'vitest';
import { put, putting, seen } from '../scripts/schedules-support.js';
import { QUEUE } from '../scripts/support.js';
import { ENGINES, OTHERS, useEngine } from './support.js';

describe.each(ENGINES)('schedules (%s)', (kind) => {
  const t = useEngine(kind);
  const page = (offset = 0, limit = 100) => t.engine.schedules.list(QUEUE, { offset, limit });
  const ids = async () => (await page()).schedules.map(({ id }) => id);
  const due = (offset = 0) => t.engine.schedules.due(QUEUE, offset);
  const wasRung = async () => (await t.engine.awaitBell([QUEUE], 20)) !== null;

  it('are stored unchanged, each with its own counters', async () => {
    expect(await t.engine.schedules.get(QUEUE, 'a')).toEqual({ now: t.now, schedule: null });
    expect(await t.engine.schedules.put(QUEUE, putting('a', { record: '{"ü":1}\n' }))).toBe('written');
    const { now, schedule } = await t.engine.schedules.get(QUEUE, 'a');
    expect(now).toBe(t.now);
    expect(schedule).toEqual({
      id: 'a',
      record: '{"ü":1}\n',
      revision: expect.any(Number),
      mode: 'running',
      nextAt: 1_000,
      fired: 0,
      lastAt: null,
      lastJob: null,
      recent: [],
      createdAt: t.now,
    });
    expect(schedule!.revision).toBeGreaterThan(0);
  });

  it('are written only if they have not changed since they were read', async () => {
    const first = await put(t, 'a');
    expect(await t.engine.schedules.put(QUEUE, putting('a', { record: 'x' }))).toBe('changed');
    expect(await seen(t, 'a')).toEqual(first);
    const second = await put(t, 'a', { revision: first.revision, record: 'y', nextAt: 'keep' });
    expect(second).toMatchObject({ record: 'y', nextAt: 1_000, createdAt: first.createdAt });
    expect(second.revision).not.toBe(first.revision);
    const stale = putting('a', { revision: first.revision, record: 'z' });
    expect(await t.engine.schedules.put(QUEUE, stale)).toBe('changed');
    expect(await t.engine.schedules.put(QUEUE, putting('b', { revision: 1 }))).toBe('changed');
    expect(await ids()).toEqual(['a']);
  });

  it('created again are never mistaken for removed ones', async () => {
    const first = await put(t, 'a');
    expect(await t.engine.schedules.remove(QUEUE, 'a')).toBe(true);
    expect(await t.engine.schedules.remove(QUEUE, 'a')).toBe(false);
    await t.advance(1);
    const second = await put(t, 'a');
    expect(second.revision).not.toBe(first.revision);
    expect(second).toMatchObject({ fired: 0, createdAt: t.now });
  });

  it('pause, stay paused when they are put again, and resume', async () => {
    const { pause, resume } = bound();
    await put(t, 'a');
    expect(await pause('a')).toBe('paused');
    const paused = await seen(t, 'a');
    expect(paused).toMatchObject({ mode: 'paused', nextAt: null });
    expect(await pause('a')).toBe('unchanged');
    expect(await seen(t, 'a')).toEqual(paused);
    await put(t, 'a', { revision: paused.revision, nextAt: 5 });
    const anew = await seen(t, 'a');
    expect(anew).toMatchObject({ mode: 'paused', nextAt: null });
    expect(await resume('a', paused.revision, 9)).toBe('changed');
    expect(await resume('a', anew.revision, 9)).toBe('resumed');
    expect(await seen(t, 'a')).toMatchObject({ mode: 'running', nextAt: 9 });
    expect(await resume('a', anew.revision, 9)).toBe('unchanged');
    expect(await pause('nobody')).toBe('not-found');
    expect(await resume('nobody', 1, 9)).toBe('not-found');
  });

  it('end if there is no next time, and start again when they are put with one', async () => {
    const { pause, resume } = bound();
    const ended = await put(t, 'a', { nextAt: null });
    expect(ended).toMatchObject({ mode: 'ended', nextAt: null });
    expect(await pause('a')).toBe('unchanged');
    const again = await put(t, 'a', { revision: ended.revision, nextAt: 7 });
    expect(again).toMatchObject({ mode: 'running', nextAt: 7 });
    await pause('a');
    const { revision } = await seen(t, 'a');
    expect(await resume('a', revision, null)).toBe('resumed');
    expect(await seen(t, 'a')).toMatchObject({ mode: 'ended', nextAt: null });
  });

  it('are listed in the order of their creation, in pages', async () => {
    for (const id of ['c', '__proto__', 'a']) {
      await put(t, id);
      await t.advance(1);
    }
    await put(t, 'z');
    await put(t, 'ä');
    await put(t, 'B');
    expect(await ids()).toEqual(['c', '__proto__', 'a', 'B', 'z', 'ä']);
    expect(await page(1, 2)).toMatchObject({ total: 6, schedules: [{ id: '__proto__' }, { id: 'a' }] });
    expect(await page(6, 2)).toEqual({ total: 6, schedules: [] });
  });

  it('are listed as due after an offset, the most overdue first', async () => {
    await put(t, 'late', { nextAt: t.now });
    await put(t, 'later', { nextAt: t.now + 1 });
    await put(t, 'b', { nextAt: 5 });
    await put(t, 'a', { nextAt: 5 });
    await put(t, 'ended', { nextAt: null });
    const all = await due();
    expect(all).toMatchObject({ now: t.now, nextInMs: 1 });
    expect(all.due.map(({ id }) => id)).toEqual(['a', 'b', 'late']);
    expect((await due(2)).due.map(({ id }) => id)).toEqual(['late']);
    await t.advance(1);
    expect(await due(3)).toMatchObject({ due: [{ id: 'later' }], nextInMs: null });
  });

  it('are found a hundred at a time', async () => {
    for (let i = 0; i < 102; i++) await put(t, `s${String(i).padStart(3, '0')}`, { nextAt: 1 });
    const all = await due();
    expect(all.due).toHaveLength(100);
    expect((await due(100)).due.map(({ id }) => id)).toEqual(['s100', 's101']);
  });

  it('wake a worker if the first time becomes earlier, and only then', async () => {
    await put(t, 'a', { nextAt: t.now + 5_000 });
    expect(await wasRung()).toBe(true);
    await put(t, 'b', { nextAt: t.now + 6_000 });
    expect(await wasRung()).toBe(false);
    await put(t, 'c', { nextAt: t.now + 4_000 });
    expect(await wasRung()).toBe(true);
  });

  it('report the first time to workers that ask for work and to those that sleep', async () => {
    expect(await t.exchanged()).toMatchObject({ scheduleInMs: null });
    await put(t, 'a', { nextAt: t.now + 5_000 });
    await put(t, 'b', { nextAt: t.now + 3_000 });
    expect(await t.exchanged()).toMatchObject({ scheduleInMs: 3_000 });
    expect(await t.engine.look([{ queue: QUEUE, worker: 'w' }])).toMatchObject([
      { queue: QUEUE, work: false, scheduleInMs: 3_000 },
    ]);
    await t.advance(3_500);
    expect(await t.exchanged()).toMatchObject({ scheduleInMs: 0 });
  });

  it('belong to one queue; the queues that have a next time can be listed', async () => {
    const [other] = OTHERS;
    await put(t, 'a', { nextAt: null });
    expect(await t.engine.schedules.scheduled([QUEUE, other])).toEqual([]);
    await t.engine.schedules.put(other, putting('a'));
    expect(await t.engine.schedules.scheduled([QUEUE, other])).toEqual([other]);
    expect(await t.engine.schedules.scheduled([])).toEqual([]);
    expect(await t.engine.schedules.remove(QUEUE, 'a')).toBe(true);
    expect(await t.engine.schedules.get(other, 'a')).toMatchObject({ schedule: { id: 'a' } });
  });

  it('go when the queue is obliterated', async () => {
    await put(t, 'a');
    expect(await t.engine.admin.obliterate(QUEUE, false)).toBe('obliterated');
    expect(await page()).toEqual({ total: 0, schedules: [] });
    expect(await due()).toMatchObject({ due: [], nextInMs: null });
  });

  it('are returned as copies: changing a copy changes nothing', async () => {
    await put(t, 'a');
    for (const one of [await seen(t, 'a'), (await page()).schedules[0]!, (await due()).due[0]!])
      Object.assign(one, { record: 'mine', nextAt: 0 });
    expect(await seen(t, 'a')).toMatchObject({ record: 'record of a', nextAt: 1_000 });
  });

  function bound() {
    return {
      pause: (id: string) => t.engine.schedules.pause(QUEUE, id),
      resume: (id: string, revision: number, nextAt: number | null) =>
        t.engine.schedules.resume(QUEUE, { id, revision, nextAt }),
    };
  }
});
