import { describe, expect, it } from 'vitest';
import { renew } from '#lib/engine/scripts/schedules.js';
import { declaring, endsIn, renewing, scheduleIds, TTL_MS, withdrawing } from './declarations-support.js';
import { useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

/** Ms until the declaration of a process ends. */
async function left(process: string): Promise<number> {
  const all = await q.admin.zrange(q.key('declarers'), '0', '-1', 'WITHSCORES');
  return Number(all[all.findIndex((one) => one.startsWith(`${process} `)) + 1]) - (await q.now());
}

it('lives for the same time again', async () => {
  await declaring(q, 'p1', ['a']);
  await endsIn(q, 'p1', 10_000);
  expect(await renewing(q, 'p1', ['a'])).toEqual({
    kind: 'renewed',
    removed: [],
    shifted: false,
    idle: false,
  });
  expect(await left('p1')).toBeGreaterThan(TTL_MS - 10_000);
});

it('does not know a declaration that expired or was removed with the queue', async () => {
  expect(await changingNothing(q, () => renewing(q, 'p1', ['a']))).toEqual({ kind: 'unknown' });
});

describe('a process that went silent', () => {
  it('is given up, and what only it declared is removed', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await declaring(q, 'p2', ['a'], { puts: [] });
    await endsIn(q, 'p1', -1);
    const answer = { kind: 'renewed', removed: ['b'], shifted: true, idle: false };
    expect(await renewing(q, 'p2', ['a'])).toEqual(answer);
    expect(await scheduleIds(q)).toEqual(['a']);
    expect(await q.zset('declarers')).toEqual([expect.stringMatching(/^p2 /)]);
    expect(await renewing(q, 'p2', ['a'])).toMatchObject({ removed: [], shifted: false });
  });

  it('is given up, and nothing is removed while another process declares the same', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await declaring(q, 'p3', ['a', 'b'], { puts: [] });
    await declaring(q, 'p2', ['a'], { puts: [] });
    await endsIn(q, 'p1', -1);
    expect(await renewing(q, 'p2', ['a'])).toMatchObject({ removed: [], shifted: false });
    expect(await scheduleIds(q)).toEqual(['a', 'b']);
  });

  it('is renewed if this one is late too: Redis or its clock may have stopped', async () => {
    await declaring(q, 'p1', ['a', 'b']);
    await declaring(q, 'p2', ['a'], { puts: [] });
    await endsIn(q, 'p1', -5_000);
    await endsIn(q, 'p2', -1);
    expect(await renewing(q, 'p2', ['a'])).toMatchObject({ removed: [], shifted: false });
    expect(await left('p1')).toBeGreaterThan(0);
    await endsIn(q, 'p1', -1);
    expect(await renewing(q, 'p2', ['a'])).toMatchObject({ removed: ['b'], shifted: true });
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

it('removes withdrawn schedules', async () => {
  await declaring(q, 'p1', ['a', 'b']);
  await declaring(q, 'p2', ['a'], { puts: [] });
  await withdrawing(q, 'p1', ['a', 'b']);
  expect(await renewing(q, 'p2', ['a'])).toMatchObject({ removed: ['b'], shifted: true });
});

it('shortens a declaration that is too far ahead: the clock was set back', async () => {
  await declaring(q, 'p1', ['a']);
  await declaring(q, 'p2', ['a'], { puts: [] });
  await endsIn(q, 'p1', 3_600_000);
  await renewing(q, 'p2', ['a']);
  expect(await left('p1')).toBeLessThanOrEqual(TTL_MS);
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
