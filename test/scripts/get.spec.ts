import { describe, expect, it } from 'vitest';
import { get } from '#lib/engine/scripts/admin.js';
import { job, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const getting = (id = 'a') => changingNothing(q, () => q.engine.admin.get(QUEUE, id));

const FRESH = {
  id: 'a',
  body: job('a').body,
  failed: 0,
  stalls: 0,
  failure: null,
  failedAt: null,
  failures: [],
  dueAt: null,
  endedAt: null,
  worker: null,
  progress: null,
  logs: [],
  result: null,
  resultFault: null,
  attempt: null,
  durationUs: null,
  cancelReason: null,
};

it('of a waiting job, plain or prioritized or suspect', async () => {
  await q.add('a');
  expect(await getting()).toEqual({ ...FRESH, state: 'waiting' });
  await q.add(job('b', { priority: 3 }));
  expect(await getting('b')).toMatchObject({ state: 'waiting' });
  await q.admin.rpoplpush(q.key('wait'), q.key('suspects'));
  await q.admin.hset(q.key('stalls'), 'a', 2);
  expect(await getting()).toEqual({ ...FRESH, state: 'waiting', stalls: 2 });
});

it('of an active job, with its worker', async () => {
  await q.add('first', 'a');
  await q.claim(1, 'w2');
  await q.claim(1, 'w1');
  await q.add('third');
  await q.claim(1, 'w3');
  expect(await getting()).toEqual({ ...FRESH, state: 'active', worker: 'w1' });
});

it('of a job with any body, byte for byte', async () => {
  const body = 'work\n{"text":"zwei\\nZeilen \u0000 🦆 \u2028"}\n\n';
  await q.add({ id: 'a', name: 'work', body });
  expect(await getting()).toMatchObject({ body });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: get.keys,
    async prepare() {
      await q.hold('a');
      return () => q.engine.admin.get(QUEUE, 'a');
    },
  });

  it('changes nothing if an active set is of another type', async () => {
    await q.hold('a');
    await q.admin.set(q.key('active'), 'not ours');
    await changingNothing(q, () =>
      expect(q.engine.admin.get(QUEUE, 'a')).rejects.toMatchObject({ reply: 'WRONGTYPE', verb: 'get' }),
    );
  });
});
