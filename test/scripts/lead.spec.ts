import { describe, expect, it } from 'vitest';
import { lead } from '#lib/engine/scripts/processes.js';
import { useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const call = (owner: string, state = '', leaseMs = 10_000) =>
  q.engine.processes.lead({ owner, leaseMs, state });

it('makes the first one the leader, for one lease from now on the clock of Redis, and keeps the key for a week', async () => {
  const before = await q.now();
  expect(await call('a', 'one')).toEqual({ isLeader: true, state: 'one' });
  const after = await q.now();
  const { owner, until, state } = await q.hash('alerts');
  expect([owner, state]).toEqual(['a', 'one']);
  expect(Number(until)).toBeGreaterThanOrEqual(before + 10_000);
  expect(Number(until)).toBeLessThanOrEqual(after + 10_000);
  const left = await q.admin.pttl(q.key('alerts'));
  expect(left).toBeGreaterThan(604_800_000 - 10_000);
});

it('returns the state to others, and changes nothing for them', async () => {
  await call('a', 'one');
  await changingNothing(q, async () => {
    expect(await call('b', 'mine')).toEqual({ isLeader: false, state: 'one' });
    expect(await call('', '', 0)).toEqual({ isLeader: false, state: 'one' });
  });
});

it('keeps the state if none is given, and passes it to the next leader once the lease is over or released', async () => {
  await call('a', 'one');
  expect(await call('a')).toEqual({ isLeader: true, state: 'one' });
  await q.admin.hset(q.key('alerts'), 'until', 1);
  expect(await call('b')).toEqual({ isLeader: true, state: 'one' });
  expect(await call('a')).toEqual({ isLeader: false, state: 'one' });
  expect(await call('b', '', 0)).toEqual({ isLeader: false, state: 'one' });
  expect(await call('a', 'two')).toEqual({ isLeader: true, state: 'two' });
});

it('treats an unreadable end of the lease, written by another program, as over', async () => {
  await call('a', 'one');
  await q.admin.hset(q.key('alerts'), 'until', 'never');
  expect(await call('b')).toEqual({ isLeader: true, state: 'one' });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: lead.keys,
    async prepare() {
      await call('a', 'one');
      return () => call('a', 'two');
    },
  });
});
