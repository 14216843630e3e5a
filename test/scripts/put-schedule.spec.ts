import { describe, expect, it } from 'vitest';
import { putSchedule } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { firing, put, putting, seen, tick } from './schedules-support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const FAR = 4_102_444_800_000;
const puts = (...call: Parameters<typeof putting>) => q.engine.schedules.put(QUEUE, putting(...call));

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

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: putSchedule.keys,
    async prepare() {
      const { revision } = await put(q, 'a', { nextAt: FAR });
      return () => puts('a', { revision, nextAt: FAR - 1 });
    },
  });
});
