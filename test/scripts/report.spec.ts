import { describe, expect, it } from 'vitest';
import { report } from '#lib/engine/scripts/limits.js';
import { QUEUE, useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const BREAKER = { failures: 3, ratio: 0.5, window: 60_000, openFor: 60_000, probes: 1 };
const runs = (failed: number, field = 'q') =>
  q.engine.limits.report(QUEUE, [{ field, completed: 1, failed, retries: failed, firsts: failed }]);

it('keeps what a closed breaker counts by tenths of its window, and drops it when it opens', async () => {
  await q.engine.limits.set(QUEUE, 'q', 'code', { breaker: BREAKER });
  await runs(2);
  expect(await q.admin.hget(q.key('limitStates'), 'b:q')).toMatch(/^\d+:1:2$/);
  await runs(1);
  expect(await q.admin.hgetall(q.key('limitStates'))).toEqual({ q: expect.stringMatching(/^0!\d+ $/) });
});

it('keeps first attempts by tenths of the time of a budget with a percentage', async () => {
  const retryBudget = { max: 9, per: 60_000, percent: 10 };
  await q.engine.limits.set(QUEUE, 'q', 'code', { retryBudget });
  await runs(2);
  await runs(3);
  expect(await q.admin.hgetall(q.key('limitStates'))).toEqual({
    'f:q': expect.stringMatching(/^\d+:5:0$/),
    'r:q': expect.stringMatching(/^\d+\.\d{16}$/),
  });
});

it('ignores counts that other programs wrote', async () => {
  await q.engine.limits.set(QUEUE, 'q', 'code', {
    breaker: BREAKER,
    retryBudget: { max: 9, per: 1_000, percent: 1 },
  });
  await q.admin.hset(
    q.key('limitStates'),
    'b:q',
    'nonsense',
    'f:q',
    'nonsense',
    'r:q',
    'nonsense',
    'q',
    'nonsense',
  );
  expect(await runs(3)).toMatchObject([{ breaker: 'opened' }]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: report.keys,
    // The entry of the event is written last, and may fail.
    except: ['events'],
    hasSlots: true,
    prepare: async () => {
      await q.engine.limits.set(QUEUE, 'n:a', 'code', { breaker: { ...BREAKER, failures: 1 } });
      return () => runs(1, 'n:a');
    },
  });
});
