import { describe, expect, it } from 'vitest';
import { putSchedule } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { firing, put, putting, seen, tick } from './schedules-support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const FAR = 4_102_444_800_000;
const puts = (...call: Parameters<typeof putting>) => q.engine.schedules.put(QUEUE, putting(...call));

it('creates one if there is none, and only one', async () => {
  expect(await puts('a')).toBe('written');
  expect(await changingNothing(q, () => puts('a', { record: 'other' }))).toBe('changed');
  expect(await q.zset('scheduleOrder')).toEqual(['a']);
  expect(await seen(q, 'a')).toMatchObject({ record: 'record of a', nextAt: 1_000, mode: 'running' });
});

it('changes nothing if it has changed since it was read, or is gone', async () => {
  const { revision } = await put(q, 'a');
  expect(await changingNothing(q, () => puts('a', { revision: revision + 1 }))).toBe('changed');
  expect(await changingNothing(q, () => puts('gone', { revision }))).toBe('changed');
  expect(await puts('a', { revision, record: 'new', nextAt: 5_000 })).toBe('written');
  expect(await seen(q, 'a')).toMatchObject({ record: 'new', nextAt: 5_000, revision: revision + 1 });
});

it('keeps the next time on request, and its counters and creation time in any case', async () => {
  const before = await put(q, 'a', { nextAt: 1_000 });
  await q.engine.schedules.fire(QUEUE, [firing(before, [tick('a@1')], { nextAt: FAR })]);
  const { revision } = await seen(q, 'a');
  await puts('a', { revision, record: 'new', nextAt: 'keep' });
  const { createdAt } = before;
  const counted = { fired: 1, lastAt: 1_000, lastJob: 'a@1', createdAt };
  expect(await seen(q, 'a')).toMatchObject({ record: 'new', nextAt: FAR, ...counted });
  await puts('a', { revision: revision + 1, nextAt: FAR + 1 });
  expect(await seen(q, 'a')).toMatchObject({ nextAt: FAR + 1, ...counted });
});

it('ends it if there is no next time, and lets it run again', async () => {
  const { revision } = await put(q, 'a', { nextAt: null });
  expect(await seen(q, 'a')).toMatchObject({ mode: 'ended', nextAt: null });
  await puts('a', { revision, nextAt: FAR });
  expect(await seen(q, 'a')).toMatchObject({ mode: 'running', nextAt: FAR });
  await puts('a', { revision: revision + 1, nextAt: null });
  expect(await seen(q, 'a')).toMatchObject({ mode: 'ended', nextAt: null });
  expect(await q.zset('upcoming')).toEqual([]);
});

it('keeps a schedule paused that a person has paused', async () => {
  await put(q, 'a', { nextAt: FAR });
  await q.engine.schedules.pause(QUEUE, 'a');
  const { revision } = await seen(q, 'a');
  await puts('a', { revision, record: 'new', nextAt: FAR });
  expect(await seen(q, 'a')).toMatchObject({ record: 'new', mode: 'paused', nextAt: null });
});

it('wakes a worker if it is now the first one to fire, and none otherwise', async () => {
  await put(q, 'a', { nextAt: FAR });
  expect(await q.wasRung()).toBe(true);
  await put(q, 'b', { nextAt: FAR + 1 });
  expect(await q.wasRung()).toBe(false);
  await put(q, 'c', { nextAt: FAR - 1 });
  expect(await q.wasRung()).toBe(true);
  await put(q, 'd', { nextAt: null });
  expect(await q.wasRung()).toBe(false);
});

it('treats a schedule that was removed and created again as another one', async () => {
  const before = await put(q, 'a');
  await q.engine.schedules.remove(QUEUE, 'a');
  const after = await put(q, 'a');
  expect(after.revision).not.toBe(before.revision);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: putSchedule.keys,
    async prepare() {
      const { revision } = await put(q, 'a', { nextAt: FAR });
      return () => puts('a', { revision, nextAt: FAR - 1 });
    },
  });
});
