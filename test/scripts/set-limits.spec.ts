import { describe, expect, it } from 'vitest';
import { setLimits } from '#lib/engine/scripts/limits.js';
import { encodeBody } from '#lib/job/job-record.js';
import { job, QUEUE, useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

it('keeps rules of code and of people apart, and forgets a rule that neither has', async () => {
  await q.engine.limits.set(QUEUE, 'q', 'code', { concurrency: 5 });
  await q.engine.limits.set(QUEUE, 'q', 'live', { concurrency: 2 });
  expect(await q.engine.limits.list(QUEUE)).toMatchObject([
    { code: { concurrency: 5 }, live: { concurrency: 2 }, rule: { concurrency: 2 } },
  ]);
  await q.engine.limits.set(QUEUE, 'q', 'live', null);
  expect(await q.engine.limits.list(QUEUE)).toMatchObject([{ live: null, rule: { concurrency: 5 } }]);
  await q.engine.limits.set(QUEUE, 'q', 'code', null);
  expect(await q.hash('limits')).toEqual({});
});

it('removes the rule of the code if it is set to false', async () => {
  await q.engine.limits.set(QUEUE, 'q', 'code', { concurrency: 1 });
  await q.engine.limits.set(QUEUE, 'q', 'live', { concurrency: false });
  await q.add('a', 'b');
  expect(await q.claim(9)).toEqual(['a', 'b']);
});

it('counts running jobs once, by their group', async () => {
  const body = encodeBody('work', 1, { group: 'g' }, '');
  await q.hold(job('a', { body, group: 'g' }), 'plain');
  await q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 2 });
  await q.engine.limits.set(QUEUE, 'q', 'live', { concurrency: 9 });
  await q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 1 });
  expect(await q.engine.limits.group(QUEUE, 'g')).toMatchObject({ running: 1 });
  expect(await q.zset('slots')).toEqual(['plain', 'a']);
});

/** Jobs that count against a concurrency, with the number of their line. */
const slots = () => q.admin.zrange(q.key('slots'), '0', '-1', 'WITHSCORES');

it('keeps the slot of a job that counts already, whatever changes then', async () => {
  const body = encodeBody('work', 1, { group: 'g' }, '');
  await q.hold(job('a', { body }), 'plain');
  // The next line gets the lowest number.
  await q.admin.hset(q.key('meta'), 'lines', 2_097_149);
  await q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 2 });
  expect(await slots()).toEqual(['a', '1']);
  await q.engine.limits.set(QUEUE, 'q', 'live', { concurrency: 9 });
  expect(await slots()).toEqual(['plain', '0', 'a', '1']);
  await q.engine.limits.set(QUEUE, 'g', 'live', { order: 'strict' });
  expect(await slots()).toEqual(['plain', '0', 'a', '1']);
});

it('counts running jobs of the name, and no others', async () => {
  await q.hold(job('m', { name: 'mail', body: encodeBody('mail', 1, {}, '') }));
  await q.hold(job('p', { name: 'page', body: encodeBody('page', 1, {}, '') }));
  await q.engine.limits.set(QUEUE, 'n:mail', 'live', { concurrency: 1 });
  expect(await slots()).toEqual(['m', String(Number((await q.hash('lines'))['n:mail']))]);
  await q.add(job('m2', { name: 'mail' }), job('p2', { name: 'page' }));
  expect(await q.claim(9)).toEqual(['p2']);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: setLimits.keys,
    hasSlots: true,
    async prepare() {
      const body = encodeBody('work', 1, { group: 'g' }, '');
      await q.hold(job('a', { body, group: 'g' }));
      return () => q.engine.limits.set(QUEUE, 'g', 'live', { concurrency: 1 });
    },
  });
});
