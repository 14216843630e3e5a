import { describe, expect, it } from 'vitest';
import { encodeBody } from '#lib/job/job-record.js';
import { update } from '#lib/engine/scripts/admin.js';
import { job, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

// test/conformance/updating.spec.ts tests its effects, for both engines.
const q = useQueue();
const body = encodeBody('work', 1_700_000_000_000, {}, '1');
const change = (id: string, more = {}) => q.engine.admin.update(QUEUE, { id, ...more });

it('wakes a worker if the job may run now, and those that sleep until the first due time if it is the first', async () => {
  await q.add(job('a', { body, delayMs: 60_000 }), job('b', { body, delayMs: 90_000 }));
  await q.admin.del(q.key('doorbell'));
  await change('b', { delayMs: 80_000 });
  await change('b', { data: '2', priority: 3 });
  expect(await q.zset('doorbell')).toEqual([]);
  await change('b', { delayMs: 50_000 });
  expect(await q.zset('doorbell')).toEqual(['due', 'work']);
  await q.admin.del(q.key('doorbell'));
  await change('a', { delayMs: 0 });
  expect(await q.zset('doorbell')).toEqual(['work']);
});

it('keeps a suspect in its line, whatever its priority, and delays it like others', async () => {
  await q.add(job('a', { body }));
  await q.admin.lmove(q.key('wait'), q.key('suspects'), 'LEFT', 'RIGHT');
  expect(await change('a', { priority: 5 })).toMatchObject({ state: 'waiting' });
  expect(await q.list('suspects')).toEqual(['a']);
  expect(await change('a', { priority: 5, delayMs: 1_000 })).toMatchObject({ state: 'delayed' });
  expect(await q.list('suspects')).toEqual([]);
  expect(await q.hash('priorities')).toEqual({ a: '5' });
});

it('changes nothing of a job that is in no place', async () => {
  await q.add(job('a', { body }));
  await q.admin.del(q.key('wait'));
  expect(await changingNothing(q, () => change('a', { delayMs: 1_000 }))).toEqual({ kind: 'not-found' });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: update.keys,
    except: ['jobsA', 'events'],
    async prepare() {
      // Only a job that collects the data of adds needs `unique`.
      const collects = encodeBody('work', 1_700_000_000_000, { items: 1, digest: 'K' }, '[1]');
      await q.add(job('a', { body: collects, delayMs: 60_000, priority: 2 }));
      return () => change('a', { delayMs: 0, data: '2' });
    },
  });
});
