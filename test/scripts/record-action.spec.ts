import { expect, it } from 'vitest';
import type { NewAction } from '#lib/contract/actions.js';
import { recordAction } from '#lib/engine/scripts/processes.js';
import { RULES } from '#lib/job/rules.js';
import { useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const record = (more: Partial<NewAction> = {}) =>
  q.engine.actions.record({
    actor: 'ada',
    action: 'job.retry',
    queue: 'q',
    target: 'a',
    count: 1,
    result: 'ok',
    ...more,
  });

it('adds an entry, whose id is the time of Redis', async () => {
  const before = await q.now();
  await record();
  await record({ queue: null, count: null, target: '', result: 'GODWIT_JOB_NOT_FOUND' });
  const after = await q.now();
  const [first, second] = await q.admin.xrange(q.key('actions'), '-', '+');
  const fields = [
    'actor',
    'ada',
    'action',
    'job.retry',
    'queue',
    'q',
    'target',
    'a',
    'count',
    '1',
    'result',
    'ok',
  ];
  expect(first![1]).toEqual(fields);
  const other = fields.with(5, '').with(7, '').with(9, '').with(11, 'GODWIT_JOB_NOT_FOUND');
  expect(second![1]).toEqual(other);
  for (const [id] of [first!, second!]) {
    expect(Number.parseInt(id)).toBeGreaterThanOrEqual(before);
    expect(Number.parseInt(id)).toBeLessThanOrEqual(after);
  }
});

it('keeps about the last 10,000', async () => {
  const pipeline = q.admin.pipeline();
  for (let i = 0; i < RULES.actionsMax + 300; i++) pipeline.xadd(q.key('actions'), '*', 'actor', `a${i}`);
  await pipeline.exec();
  await record();
  const length = await q.admin.xlen(q.key('actions'));
  expect(length).toBeGreaterThanOrEqual(RULES.actionsMax);
  // A node of a stream has up to 100 entries, and is deleted as a whole.
  expect(length).toBeLessThanOrEqual(RULES.actionsMax + 100);
});

itRefusesWrongTypes(q, {
  keys: recordAction.keys,
  async prepare() {
    await record();
    return () => record();
  },
});
