import { describe, expect, it } from 'vitest';
import type { FireSchedule, OccurrenceJob } from '#lib/contract/schedule-verbs.js';
import { fire } from '#lib/engine/scripts/schedules.js';
import { QUEUE, useQueue } from './support.js';
import { firing, put, seen, tick } from './schedules-support.js';
import { changingNothing, itRefusesWrongTypes, without } from './unchanged.js';

const q = useQueue();
const FAR = 4_102_444_800_000;

const fires = (...calls: FireSchedule[]) => q.engine.schedules.fire(QUEUE, calls);
/** Fires a schedule as it stands now. */
const firesNow = async (id: string, jobs: OccurrenceJob[], more: Partial<FireSchedule> = {}) =>
  (await fires(firing(await seen(q, id), jobs, more))).made[0];

describe('an occurrence', () => {
  it('keeps counters of a newer version, and shows an unknown mode', async () => {
    await put(q, 'a');
    const counted = (await q.hash('firings'))['a']!.split('\n');
    await q.admin.hset(
      q.key('firings'),
      'a',
      [...counted.slice(0, 3), 'half-paused', '', 'more', 'words'].join('\n'),
    );
    expect(await seen(q, 'a')).toMatchObject({ mode: 'half-paused', lastJob: null });
    expect(await firesNow('a', [tick('a@1')])).toBe(1);
    expect((await q.hash('firings'))['a']!.split('\n').slice(4)).toEqual([
      'a@1',
      expect.stringMatching(/^\d+$/),
      'more',
      'words',
    ]);
    expect(await seen(q, 'a')).toMatchObject({ fired: 1, lastJob: 'a@1' });
  });

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['put anew', async (id) => put(q, id, { revision: (await seen(q, id)).revision, nextAt: 'keep' })],
    ['paused', (id) => q.engine.schedules.pause(QUEUE, id)],
    ['removed', (id) => q.engine.schedules.remove(QUEUE, id)],
    ['moved by hand', (id) => q.admin.zadd(q.key('upcoming'), 999, id)],
  ])('adds no job if the schedule was %s meanwhile', async (_, change) => {
    const a = await put(q, 'a');
    await change('a');
    expect((await changingNothing(q, () => fires(firing(a, [tick('a@1')])))).made).toEqual([null]);
  });

  it('that was added already counts as added', async () => {
    await q.add('a@1');
    await put(q, 'a');
    const ofSchedules = ['upcoming', 'schedules', 'firings', 'scheduleOrder'];
    const before = without(await q.dump(), ...ofSchedules);
    expect(await firesNow('a', [tick('a@1', { body: 'other\n' })])).toBe(1);
    expect(await seen(q, 'a')).toMatchObject({ fired: 1, lastJob: 'a@1', nextAt: 2_000 });
    expect(without(await q.dump(), ...ofSchedules)).toEqual(before);
  });
});

describe('overlap', () => {
  const first = async (more: Partial<OccurrenceJob> = {}) => {
    await put(q, 'a');
    await firesNow('a', [tick('a@1', more)]);
  };

  it('replace: also one that stalled before, with all its data', async () => {
    await first();
    await q.claim();
    await q.admin.hset(q.key('stalls'), 'a@1', 2);
    await q.admin.hset(q.key('attempts'), 'a@1', 1);
    await q.admin.srem(q.key('active'), 'a@1');
    await q.admin.rpush(q.key('suspects'), 'a@1');
    expect(await firesNow('a', [tick('a@2')], { overlap: 'replace' })).toBe(1);
    expect(await q.admin.exists(q.key('suspects'), q.key('stalls'), q.key('attempts'))).toBe(0);
  });

  it('replace: also one of the same call, with its priority', async () => {
    await put(q, 'a');
    const ticks = ['a@1', 'a@2'].map((id) => tick(id, { dueAt: FAR, priority: 3 }));
    expect(await firesNow('a', ticks, { overlap: 'replace' })).toBe(2);
    expect(await q.hash('priorities')).toEqual({ 'a@2': '3' });
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: fire.keys,
    except: ['events'],
    async prepare() {
      const a = await put(q, 'a');
      return () =>
        fires(
          firing(a, [tick('a@1'), tick('a@2', { dueAt: FAR, priority: 2 }), tick('a@3', { priority: 1 })]),
        );
    },
  });
});
