import { expect, it } from 'vitest';
import { enqueueEnd } from '#lib/engine/scripts/adds.js';
import { useQueue } from './support.js';
import { changingNothing } from './unchanged.js';

// With the transaction that it ends: `enqueue-begin.spec.ts`.
const q = useQueue();

const end = () =>
  q.engine['store'].run(enqueueEnd, { ...q.keys.fixed, undo: q.keys.undo, bodies: q.key('bodies') }, {}, {});

it('changes nothing if nothing has to be undone', async () => {
  await q.add('a');
  expect(await changingNothing(q, end)).toBe(true);
});

it('removes as many ids as were written, and the bodies of the new jobs', async () => {
  await q.add('a', 'b');
  const before = await q.dump();
  await q.admin.rpush(q.key('wait'), 'a', 'c', 'd');
  await q.admin.hset(q.key('jobs'), { c: 'body', d: 'body' });
  await q.admin.set(q.keys.undo, '3\nc\nd');
  expect(await end()).toBe(false);
  expect(await q.dump()).toEqual(before);
});

it.each(['jobs', 'wait'] as const)('does not change %s if it is of another type', async (kind) => {
  await q.admin.set(q.key(kind), 'not ours');
  await q.admin.set(q.keys.undo, '2\nc\nd');
  expect(await end()).toBe(false);
  expect(await q.admin.get(q.key(kind))).toBe('not ours');
  expect(await q.admin.exists(q.keys.undo)).toBe(0);
});
