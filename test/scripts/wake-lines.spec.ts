import { describe, expect, it } from 'vitest';
import { wakeLines } from '#lib/engine/scripts/limits.js';
import { encodeBody } from '#lib/job/job-record.js';
import { job, QUEUE, useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const member = (id: string, group: string) => job(id, { group, body: encodeBody('work', 1, { group }, '') });
const slow = { rate: { max: 1, per: 600_000, window: 'fixed', burst: 1 } } as const;

it('lets all groups go on when their common rule changes', async () => {
  await q.engine.limits.set(QUEUE, 'g', 'live', slow);
  await q.add(
    ...['a', 'b', 'c'].flatMap((group) => [member(`${group}1`, group), member(`${group}2`, group)]),
  );
  expect((await q.claim(9)).length).toBe(3);
  expect(await q.claim(9)).toEqual([]);
  expect(await q.zset('resting')).toHaveLength(3);
  await q.engine.limits.set(QUEUE, 'g', 'live', null);
  expect(await q.zset('resting')).toEqual([]);
  expect((await q.claim(9)).toSorted()).toEqual(['a2', 'b2', 'c2']);
});

it('makes no line ready that holds only the jobs of one priority of a group', async () => {
  const first = job('a1', {
    group: 'a',
    priority: 1,
    body: encodeBody('work', 1, { group: 'a', priority: 1 }, ''),
  });
  await q.add(member('a0', 'a'), first);
  await q.exchange({ want: 0 });
  await q.engine.limits.wakeLines(QUEUE);
  expect(await q.zset('ready')).toEqual([(await q.hash('lines'))['g:a']]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: wakeLines.keys,
    hasSlots: true,
    prepare: async () => {
      await q.add(member('a', 'g'));
      return () => q.engine.limits.wakeLines(QUEUE);
    },
  });
});
