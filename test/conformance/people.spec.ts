import { describe, expect, it } from 'vitest';
import { encodeBody } from '#lib/job/job-record.js';
import {
  completed,
  dead,
  job,
  kept,
  LEASE_MS,
  QUEUE,
  released,
  retried,
  WORKER,
} from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';
import { countsOf } from '../support/queue-states.js';

describe.each(ENGINES)('what people do on %s', (kind) => {
  const t = useEngine(kind);
  const get = (id: string) => t.engine.admin.get(QUEUE, id);

  /** One job in each state, named by it. */
  async function oneOfEach(): Promise<void> {
    await t.bury('dead');
    await t.hold('completed', 'active');
    await t.settle(kept('completed', 60_000, '1'));
    await t.add('waiting', job('prioritized', { priority: 1 }), job('delayed', { delayMs: 500 }));
  }

  it('see everything about one job', async () => {
    await oneOfEach();
    const nothing = { failed: 0, stalls: 0, failure: null, failedAt: null, dueAt: null, endedAt: null };
    const fresh = {
      ...nothing,
      worker: null,
      failures: [],
      progress: null,
      logs: [],
      result: null,
      resultFault: null,
      cancelReason: null,
      attempt: null,
    };
    const common = { ...fresh, durationUs: null };
    expect(await get('waiting')).toEqual({ ...common, ...idAndBody('waiting'), state: 'waiting' });
    expect(await get('prioritized')).toEqual({ ...common, ...idAndBody('prioritized'), state: 'waiting' });
    expect(await get('delayed')).toEqual({
      ...common,
      ...idAndBody('delayed'),
      state: 'delayed',
      dueAt: t.now + 500,
    });
    expect(await get('active')).toEqual({
      ...common,
      ...idAndBody('active'),
      state: 'active',
      worker: WORKER,
    });
    expect(await get('none')).toBeNull();
    expect(await get('__proto__')).toBeNull();
  });

  function idAndBody(id: string) {
    return { id, body: job(id).body };
  }

  it('see how many there are of each state', async () => {
    await oneOfEach();
    expect(await t.engine.admin.counts(QUEUE)).toEqual({
      ...countsOf({ waiting: 2, delayed: 1, active: 1, completed: 1, dead: 1 }),
      paused: false,
      isLimited: false,
    });
    await t.advance(60_000);
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ completed: 0 });
  });

  describe('see since when the oldest job waits', () => {
    const body = (at: number, more = {}) => ({ name: 'work', body: encodeBody('work', at, more, '1') });

    it('of the first of the line, of suspects, and of the highest and the lowest priority', async () => {
      expect(await t.engine.admin.oldestWaitingMs(QUEUE)).toBeNull();
      await t.add(job('a', body(t.now - 300)), job('b', body(t.now - 9_000)));
      expect(await t.engine.admin.oldestWaitingMs(QUEUE)).toBe(300);
      await t.add(job('high', { ...body(t.now - 400), priority: 1 }));
      await t.add(
        job('low', { ...body(t.now - 700), priority: 9 }),
        job('newer', { ...body(t.now), priority: 9 }),
      );
      expect(await t.engine.admin.oldestWaitingMs(QUEUE)).toBe(700);
    });

    it('counted from when it could first run, and without those that have failed before', async () => {
      await t.hold(job('failed', body(t.now - 60_000)));
      await t.settle(retried('failed'));
      expect(await t.engine.admin.oldestWaitingMs(QUEUE)).toBeNull();
      await t.add(job('b', body(t.now - 5_000, { delayMs: 4_000 })));
      expect(await t.engine.admin.oldestWaitingMs(QUEUE)).toBe(1_000);
    });
  });

  describe('remove', () => {
    it('a job in any state but active', async () => {
      await oneOfEach();
      for (const id of ['waiting', 'prioritized', 'delayed', 'dead', 'completed'])
        expect(await t.engine.admin.remove(QUEUE, id)).toBe('removed');
      expect(await t.engine.admin.remove(QUEUE, 'active')).toBe('active');
      expect(await t.engine.admin.remove(QUEUE, 'waiting')).toBe('not-found');
      const { checked, counts } = await t.engine.admin.audit(QUEUE);
      expect({ checked, active: counts.active }).toEqual({ checked: 1, active: 1 });
    });

    it('none whose retention is over: it is gone already', async () => {
      await oneOfEach();
      await t.advance(60_000);
      expect(await t.engine.admin.remove(QUEUE, 'completed')).toBe('not-found');
    });

    it('a job out of the middle of its line', async () => {
      await t.add('a', 'b', 'c');
      await t.engine.admin.remove(QUEUE, 'b');
      expect(await t.claim()).toEqual(['a', 'c']);
    });

    it('many jobs at once, wherever they are, and answers for each', async () => {
      await oneOfEach();
      const ids = ['none', 'waiting', 'active', 'dead', 'waiting', 'completed', 'delayed', 'prioritized'];
      const answers = await t.engine.admin.removeAll(QUEUE, ids);
      expect(answers.toSorted()).toEqual(['active', 'not-found', 'not-found', ...Array(5).fill('removed')]);
      expect(await t.engine.admin.removeAll(QUEUE, ids)).toEqual(
        ids.map((id) => (id === 'active' ? 'active' : 'not-found')),
      );
      expect(await t.engine.admin.removeAll(QUEUE, [])).toEqual([]);
    });

    it('many jobs out of a line, and leaves the others in their order', async () => {
      const all = Array.from({ length: 301 }, (_, i) => `job-${i}`);
      const chosen = all.filter((_, i) => i % 3 === 1 || i > 250);
      await t.add(...all);
      expect(await t.engine.admin.removeAll(QUEUE, chosen)).toEqual(chosen.map(() => 'removed'));
      expect(await t.claim(301)).toEqual(all.filter((id) => !chosen.includes(id)));
    });
  });

  describe('cancel', () => {
    it('what has not started: it is gone, and known for a minute', async () => {
      await oneOfEach();
      for (const id of ['waiting', 'prioritized', 'delayed'])
        expect(await t.engine.admin.cancel(QUEUE, id, `no ${id}`)).toBe('cancelled');
      for (const id of ['completed', 'dead', 'none', 'waiting'])
        expect(await t.engine.admin.cancel(QUEUE, id, 'no')).toBe('not-found');
      expect(await get('delayed')).toBeNull();
      const known = await t.engine.admin.cancelled(QUEUE, 'delayed');
      expect(known?.reason).toBe('no delayed');
      expect(known?.agoMs).toBeLessThan(60_000);
      expect(await t.engine.admin.cancelled(QUEUE, 'active')).toBeNull();
      expect((await t.engine.admin.stats(QUEUE, 1)).total.cancelled).toBe(3);
    });

    it.each([
      ['retried', (id: string) => retried(id, { delayMs: 100 })],
      ['dead', (id: string) => dead(id)],
      ['released', (id: string) => released(id)],
    ] as const)('what runs: once it is %s it ends, and the first reason counts', async (_, outcome) => {
      await t.hold('a', 'other');
      expect(await t.engine.admin.cancel(QUEUE, 'a', 'first')).toBe('signalled');
      expect(await t.engine.admin.cancel(QUEUE, 'a', 'second')).toBe('signalled');
      expect(await get('a')).toMatchObject({ state: 'active' });
      const from = await t.engine.lastEvent(QUEUE);
      expect(await t.settle(outcome('a'), completed('other'))).toMatchObject({ lost: [], held: 0 });
      const said = (await t.events(from)).map(({ type, id }) => `${type} ${id}`);
      expect(said.toSorted()).toEqual(['cancelled a', 'completed other']);
      expect(await get('a')).toBeNull();
      expect(await t.engine.admin.cancelled(QUEUE, 'a')).toMatchObject({ reason: 'first' });
      const { total } = await t.engine.admin.stats(QUEUE, 1);
      expect(total).toMatchObject({ cancelled: 1, failed: 0, dead: 0 });
    });

    it('many jobs at once, wherever they are, and answers for each', async () => {
      await oneOfEach();
      const ids = ['delayed', 'none', 'prioritized', 'active', 'dead', 'completed', 'waiting', 'delayed'];
      const answers = await t.engine.admin.cancelAll(QUEUE, ids, 'all');
      expect(answers).toEqual([
        'cancelled',
        'not-found',
        'cancelled',
        'signalled',
        'not-found',
        'not-found',
        'cancelled',
        'not-found',
      ]);
      expect(await t.engine.admin.cancelled(QUEUE, 'waiting')).toMatchObject({ reason: 'all' });
      expect((await t.engine.admin.stats(QUEUE, 1)).total.cancelled).toBe(3);
    });

    it('a job that completes nevertheless is completed', async () => {
      await t.hold('a', 'b');
      await t.engine.admin.cancel(QUEUE, 'a', 'late');
      await t.engine.admin.cancel(QUEUE, 'b', 'late');
      await t.settle(completed('a'), kept('b', 9_000, '2'));
      expect(await t.engine.admin.cancelled(QUEUE, 'a')).toBeNull();
      expect(await get('b')).toMatchObject({ state: 'completed', result: '2' });
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
      expect((await t.engine.admin.stats(QUEUE, 1)).total).toMatchObject({ cancelled: 0, processed: 2 });
      await t.advance(9_000);
      await t.hold('b');
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({ cancels: new Map() });
    });
  });

  it('run a delayed job now', async () => {
    await t.add('waiting', job('later', { delayMs: 9_000 }), job('ranked', { delayMs: 9_000, priority: 5 }));
    expect(await t.engine.admin.promoteNow(QUEUE, 'ranked')).toBe('promoted');
    expect(await t.engine.admin.promoteNow(QUEUE, 'later')).toBe('promoted');
    expect(await t.engine.admin.promoteNow(QUEUE, 'later')).toBe('not-delayed');
    expect(await t.engine.admin.promoteNow(QUEUE, 'none')).toBe('not-found');
    expect(await t.claim()).toEqual(['waiting', 'later', 'ranked']);
  });

  it('pause and resume, and return whether that changed anything', async () => {
    const { admin } = t.engine;
    expect(await admin.resume(QUEUE)).toBe(false);
    expect(await admin.pause(QUEUE)).toBe(true);
    expect(await admin.pause(QUEUE)).toBe(false);
    expect(await admin.counts(QUEUE)).toMatchObject({ paused: true });
    expect(await admin.resume(QUEUE)).toBe(true);
    expect(await admin.counts(QUEUE)).toMatchObject({ paused: false });
  });

  describe('obliterate', () => {
    it('everything, but not while jobs run', async () => {
      await oneOfEach();
      await t.engine.admin.pause(QUEUE);
      expect(await t.engine.admin.obliterate(QUEUE, false)).toBe('active');
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 2, active: 1 });
      expect(await t.engine.admin.obliterate(QUEUE, true)).toBe('obliterated');
      const states = { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0 };
      const none = { ...states, paused: false, isLimited: false };
      expect(await t.engine.admin.counts(QUEUE)).toEqual(none);
      expect((await t.engine.admin.stats(QUEUE, 1)).total).toMatchObject({
        processed: 0,
        failed: 0,
        dead: 0,
      });
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toEqual({ kind: 'unknown-worker' });
      expect(await t.engine.overdue(QUEUE, LEASE_MS * 9)).toEqual([]);
    });

    it('a queue that was never used', async () => {
      expect(await t.engine.admin.obliterate(QUEUE, false)).toBe('obliterated');
    });

    it('but not the limits in the code, which are written only when a process starts', async () => {
      const { limits, admin } = t.engine;
      const rate = { max: 1, per: 60_000, window: 'fixed', burst: 1 } as const;
      await limits.set(QUEUE, 'q', 'code', { rate });
      await limits.set(QUEUE, 'q', 'live', { concurrency: 1 });
      await limits.set(QUEUE, 'n:mail', 'live', { concurrency: 1 });
      await t.add('a', 'b');
      expect(await t.claim()).toEqual(['a']);
      expect(await admin.obliterate(QUEUE, true)).toBe('obliterated');
      expect(await limits.list(QUEUE)).toMatchObject([{ field: 'q', code: { rate }, live: null, left: 1 }]);
      await t.add('a', 'b');
      expect(await t.claim(9, 'w2')).toEqual(['a']);
    });

    it('so that ids are free, and the numbers of the events go on', async () => {
      await t.add('a', job('b', { delayMs: 5 }));
      await t.engine.admin.obliterate(QUEUE, false);
      expect(await t.engine.lastEvent(QUEUE)).toBe(2);
      expect(await t.events()).toEqual([]);
      expect(await t.add('a', 'b')).toMatchObject({ duplicates: [] });
      expect((await t.events()).map(({ number }) => number)).toEqual([3, 4]);
      expect(await t.claim()).toEqual(['a', 'b']);
    });
  });

  describe('audit and repair', () => {
    it('find nothing in a queue after normal use', async () => {
      await oneOfEach();
      const counts = { waiting: 2, delayed: 1, active: 1, completed: 1, dead: 1, cancelled: 0 };
      expect(await t.engine.admin.audit(QUEUE)).toEqual({ violations: [], checked: 6, counts });
      expect(await t.engine.admin.repair(QUEUE, 5)).toEqual({ repairs: [], checked: 6 });
    });

    it('find and fix a lease that is too far ahead, because the clock was set back', async () => {
      await t.hold('a');
      await t.advance(-60_000);
      const text = `worker "w1" has a lease for ${LEASE_MS + 60_000} ms, more than ${LEASE_MS} ms`;
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([
        { kind: 'lease-ahead', id: null, worker: WORKER, where: ['workers'], text },
      ]);
      const mended = 'worker "w1" has a lease of the right length again';
      expect((await t.engine.admin.repair(QUEUE, 5)).repairs).toEqual([
        { did: 'leased', id: null, worker: WORKER, text: mended },
      ]);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });
  });
});
