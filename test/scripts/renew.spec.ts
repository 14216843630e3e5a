import { describe, expect, it } from 'vitest';
import { renew } from '#lib/engine/scripts/schedules.js';
import { declaring, endsIn, renewing, scheduleIds, withdrawing } from './declarations-support.js';
import { useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

it('does not know a declaration that expired or was removed with the queue', async () => {
  expect(await changingNothing(q, () => renewing(q, 'p1', ['a']))).toEqual({ kind: 'unknown' });
});

describe('a process that went silent', () => {
  it('is given up, and nothing is removed while another process declares the same', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await declaring(q, 'p3', ['a', 'b'], { puts: [] });
    await declaring(q, 'p2', ['a'], { puts: [] });
    await endsIn(q, 'p1', -1);
    expect(await renewing(q, 'p2', ['a'])).toMatchObject({ removed: [], shifted: false });
    expect(await scheduleIds(q)).toEqual(['a', 'b']);
  });

  it('is not of another owner', async () => {
    await declaring(q, 'p1', ['a'], { owner: 'app2' });
    await declaring(q, 'p2', ['b']);
    await endsIn(q, 'p1', -1);
    expect(await renewing(q, 'p2', ['b'])).toMatchObject({ removed: [], shifted: false });
    expect(await scheduleIds(q)).toEqual(['a', 'b']);
    expect(await q.zset('declarers')).toHaveLength(2);
  });
});

it('ends an empty set once the owner has no schedules', async () => {
  await declaring(q, 'p1', ['a']);
  await declaring(q, 'p2', []);
  expect(await renewing(q, 'p2', [])).toMatchObject({ idle: false });
  await withdrawing(q, 'p1', ['a']);
  expect(await renewing(q, 'p2', [])).toMatchObject({ removed: ['a'], idle: true });
  expect(await q.zset('declarers')).toEqual([]);
  expect(await q.hash('declaredSets')).toEqual({});
});

describe('renew refused', () => {
  itRefusesWrongTypes(q, {
    keys: renew.keys,
    async prepare() {
      await declaring(q, 'p1', ['a', 'b']);
      await declaring(q, 'p2', ['a'], { puts: [] });
      await withdrawing(q, 'p1', ['a', 'b']);
      return () => renewing(q, 'p2', ['a']);
    },
  });
});
