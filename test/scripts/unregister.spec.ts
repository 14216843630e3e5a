import { describe, expect, it } from 'vitest';
import { unregister } from '#lib/engine/scripts/processes.js';
import { LEASE_MS, processRecord, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const registerBoth = async () => {
  await q.engine.processes.register(processRecord({ id: 'p1' }), LEASE_MS);
  await q.engine.processes.register(processRecord({ id: 'p2' }), LEASE_MS);
};

it('removes a process at once, and no other', async () => {
  await registerBoth();
  await q.engine.processes.unregister('p1');
  expect(await q.zset('processes')).toEqual(['p2']);
  expect(Object.keys(await q.hash('processInfo'))).toEqual(['p2']);
});

it('called again, or for a process that does not exist, changes nothing', async () => {
  await registerBoth();
  await q.engine.processes.unregister('p1');
  await changingNothing(q, () => q.engine.processes.unregister('p1'));
  await changingNothing(q, () => q.engine.processes.unregister('__proto__'));
  expect(await q.zset('processes')).toEqual(['p2']);
});

it('of the last one leaves no key', async () => {
  await registerBoth();
  await q.engine.processes.unregister('p1');
  await q.engine.processes.unregister('p2');
  expect(await q.redis.keys()).toEqual([]);
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: unregister.keys,
    async prepare() {
      await registerBoth();
      return () => q.engine.processes.unregister('p1');
    },
  });
});
