import { describe, expect, it } from 'vitest';
import { NotRunningError } from '#lib/errors.js';
import {
  callOf,
  completed,
  dead,
  FAILURE,
  job,
  kept,
  LEASE_MS,
  QUEUE,
  released,
  retried,
  snoozed,
  WORKER,
} from '../scripts/support.js';
import { within } from '../support/wait.js';
import { ENGINES, useEngine } from './support.js';

const BRIEF = { name: FAILURE.name, message: FAILURE.message, attempt: FAILURE.attempt };

describe.each(ENGINES)('events on %s', (kind) => {
  const t = useEngine(kind);
  const nothing = { attempt: 1, durationUs: 0, delayMs: 0, reason: '', error: null, progress: null };
  const work = { ...nothing, name: 'work' };
  const told = async (after = 0) => (await t.events(after)).map(({ number: _, ...event }) => event);

  it('report jobs that were added or delayed', async () => {
    await t.add('a', job('b', { delayMs: 500 }), job('c', { name: 'mail', priority: 3 }));
    await t.add(job('d', { dueAt: t.now - 5_000 }));
    expect(await told()).toEqual([
      { ...work, type: 'added', id: 'a' },
      { ...work, type: 'added', id: 'c', name: 'mail' },
      { ...work, type: 'delayed', id: 'b', delayMs: 500 },
      { ...work, type: 'delayed', id: 'd' },
    ]);
  });

  it('report how runs ended, by outcome, with the error but without its stack', async () => {
    const long = { ...FAILURE, message: 'x'.repeat(900), attempt: 2 };
    await t.hold('r', 'done', 'kept', 'dies', 'back', 'snoozes', 'again');
    const from = await t.engine.lastEvent(QUEUE);
    await t.settle(
      retried('r', { delayMs: 20.5, failure: long }),
      { ...completed('done'), name: 'mail', attempt: 3, durationUs: 7 },
      dead('dies'),
      released('back'),
      snoozed('snoozes', 700),
      kept('kept', 9_000, '1'),
      retried('again', { failure: null }),
    );
    const us = { ...work, durationUs: 1_500 };
    expect(await told(from)).toEqual([
      { ...us, type: 'completed', id: 'done', name: 'mail', attempt: 3, durationUs: 7 },
      { ...us, type: 'completed', id: 'kept' },
      {
        ...us,
        type: 'retrying',
        id: 'r',
        delayMs: 21,
        error: { ...BRIEF, message: 'x'.repeat(500), attempt: 2 },
      },
      { ...us, type: 'retrying', id: 'again' },
      { ...work, type: 'delayed', id: 'snoozes', delayMs: 700 },
      { ...us, type: 'dead', id: 'dies', reason: 'unrecoverable', error: BRIEF },
      { ...work, type: 'released', id: 'back' },
    ]);
  });

  it('report which jobs run, and in which attempt', async () => {
    await t.hold('a');
    await t.settle(retried('a'));
    await t.add(job('b', { name: 'mail' }));
    const from = await t.engine.lastEvent(QUEUE);
    await t.claim();
    expect(await told(from)).toEqual([
      { ...work, type: 'active', id: 'a', attempt: 2 },
      { ...work, type: 'active', id: 'b', name: 'mail' },
    ]);
  });

  it('report what people did', async () => {
    await t.add('a', 'b');
    await t.bury('c', 'd');
    const { admin, upkeep } = t.engine;
    const from = await t.engine.lastEvent(QUEUE);
    await admin.pause(QUEUE);
    await admin.resume(QUEUE);
    await upkeep.retryDead(QUEUE, { ids: ['c'] });
    await admin.remove(QUEUE, 'd');
    await admin.cancel(QUEUE, 'c', 'no more');
    await t.add('e');
    await upkeep.clean(QUEUE, { state: 'waiting', olderThanMs: 0, limit: 1 });
    expect(await told(from)).toEqual([
      { ...nothing, name: '', type: 'paused', id: '' },
      { ...nothing, name: '', type: 'resumed', id: '' },
      { ...work, type: 'added', id: 'c' },
      { ...work, type: 'removed', id: 'd', reason: 'asked' },
      { ...work, type: 'cancelled', id: 'c', attempt: 0, reason: 'no more' },
      { ...work, type: 'added', id: 'e' },
      { ...work, type: 'removed', id: 'e', reason: 'asked' },
    ]);
  });

  it('of the application are in order with those of jobs', async () => {
    const from = await t.engine.lastEvent(QUEUE);
    await t.add('a');
    await t.engine.admin.publish(QUEUE, 'own', '{"rows":3}');
    await t.add('b');
    expect(await told(from)).toEqual([
      { ...work, type: 'added', id: 'a' },
      { ...nothing, type: 'published', id: '', name: 'own', progress: '{"rows":3}' },
      { ...work, type: 'added', id: 'b' },
    ]);
  });

  it('report what happened to the jobs of a silent worker', async () => {
    await t.hold('a', 'b', 'c');
    await t.engine.admin.cancel(QUEUE, 'c', 'off');
    const from = await t.engine.lastEvent(QUEUE);
    const call = { worker: WORKER, beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 0 };
    await t.advance(LEASE_MS);
    await t.engine.recover(QUEUE, call);
    await t.advance(2_000);
    await t.engine.recover(QUEUE, call);
    expect(await told(from)).toEqual([
      { ...work, type: 'cancelled', id: 'c', reason: 'off' },
      { ...work, type: 'stalled', id: 'a' },
      { ...work, type: 'stalled', id: 'b' },
      { ...work, type: 'dead', id: 'a', reason: 'stalled' },
      { ...work, type: 'dead', id: 'b', reason: 'stalled' },
    ]);
  });

  it('report progress, not log lines', async () => {
    await t.hold('a');
    const from = await t.engine.lastEvent(QUEUE);
    const note = { worker: WORKER, id: 'a', name: 'work', attempt: 3 };
    await t.engine.note(QUEUE, { ...note, log: 'a line' });
    await t.engine.note(QUEUE, { ...note, progress: '{"n":1}' });
    expect(await told(from)).toEqual([
      { ...work, type: 'progress', id: 'a', attempt: 3, progress: '{"n":1}' },
    ]);
  });

  it('report which dead jobs were removed to make room', async () => {
    const engine = t.engineWith({ deadMax: 1 });
    await t.bury('old');
    await t.advance(1_000);
    await t.hold('new');
    const from = await t.engine.lastEvent(QUEUE);
    await t.exchanged({ settled: [dead('new')] }, engine);
    expect(await told(from)).toMatchObject([
      { type: 'dead', id: 'new' },
      { type: 'removed', id: 'old', name: 'work', reason: 'retention' },
    ]);
  });

  describe('have numbers', () => {
    it('that rise by one, with gaps for changes that did not happen', async () => {
      await t.add('a', 'b');
      await t.add('a', 'c');
      expect((await t.events()).map(({ number, id }) => `${number} ${id}`)).toEqual(['1 a', '2 b', '4 c']);
      await t.claim();
      await t.settle(completed('a'), completed('lost'), dead('b'));
      expect((await t.events(7)).map(({ number, id }) => `${number} ${id}`)).toEqual(['8 a', '10 b']);
      expect(await t.engine.lastEvent(QUEUE)).toBe(10);
    });

    it('that calls without a change do not use up', async () => {
      await t.add('a');
      await t.add('a');
      await t.exchanged({ settled: [completed('never')] });
      await t.engine.admin.resume(QUEUE);
      await t.engine.upkeep.retryDead(QUEUE, { ids: ['a'] });
      expect(await t.engine.lastEvent(QUEUE)).toBe(1);
    });

    it('that give the first and last event of a batch', async () => {
      await t.add('a', 'b');
      await t.claim();
      await t.engine.openEvents();
      const batches = await t.engine.readEvents(new Map([[QUEUE, 0]]), 5);
      expect(batches).toMatchObject([
        { queue: QUEUE, first: 1, last: 2, at: t.now, events: [{ number: 1 }, { number: 2 }] },
        { queue: QUEUE, first: 3, last: 4, at: t.now, events: [{ number: 3 }, { number: 4 }] },
      ]);
    });
  });

  describe('are read', () => {
    it('after any number; a batch that is only partly after it is read as a whole', async () => {
      await t.add('a', 'b', 'c');
      await t.add('d');
      await t.engine.openEvents();
      const read = async (after: number) =>
        (await t.engine.readEvents(new Map([[QUEUE, after]]), 5)).map(({ first, last }) => [first, last]);
      expect(await read(2)).toEqual([
        [1, 3],
        [4, 4],
      ]);
      expect(await read(3)).toEqual([[4, 4]]);
      expect(await read(4)).toEqual([]);
      expect(await read(99)).toEqual([]);
    });

    it('at most a hundred batches at a time', async () => {
      for (let i = 1; i <= 300; i++) await t.engine.enqueue(QUEUE, callOf([`j${i}`], i));
      await t.engine.openEvents();
      const counts: number[] = [];
      for (let last = 0; last < 300; last += counts.at(-1)!)
        counts.push((await t.engine.readEvents(new Map([[QUEUE, last]]), 5)).length);
      expect(Math.max(...counts)).toBe(100);
    });

    it('of large batches few at a time, once they are known to be large', async () => {
      const large = 'x'.repeat(300_000);
      await t.add('job');
      await t.claim();
      for (let i = 1; i <= 40; i++) {
        const note = { worker: WORKER, id: 'job', name: 'job', attempt: 1, progress: `"${large}"` };
        await t.engine.note(QUEUE, note);
      }
      await t.engine.openEvents();
      let last = 0;
      const sizes: number[] = [];
      while (sizes.reduce((sum, size) => sum + size, 0) < 42) {
        const batches = await t.engine.readEvents(new Map([[QUEUE, last]]), 5);
        last = batches.at(-1)!.last;
        sizes.push(batches.length);
      }
      expect(Math.max(...sizes.slice(1))).toBeLessThanOrEqual(kind === 'redis' ? 3 : 42);
      expect(last).toBe(42);
    });

    it('of several queues at once', async () => {
      await t.add('a');
      await t.engine.enqueue('q2', callOf(['b'], 1));
      await t.engine.openEvents();
      const after = new Map([QUEUE, 'q2', 'q3'].map((queue) => [queue, 0]));
      const batches = await t.engine.readEvents(after, 5);
      const said = new Map(batches.map(({ queue, events }) => [queue, events[0]!.id]));
      expect(said).toEqual(
        new Map([
          [QUEUE, 'a'],
          ['q2', 'b'],
        ]),
      );
    });

    it('as soon as there is one, by every waiting reader', async () => {
      const other = t.engineWith();
      await t.engine.openEvents();
      await other.openEvents();
      const reads = [t.engine, other].map((engine) => engine.readEvents(new Map([[QUEUE, 0]]), 30_000));
      await t.add('a');
      for (const read of reads)
        expect(await within(read, { what: 'the event' })).toMatchObject([{ events: [{ id: 'a' }] }]);
    });

    it('only while they are open', async () => {
      const read = () => t.engine.readEvents(new Map([[QUEUE, 0]]), 5);
      await expect(read()).rejects.toBeInstanceOf(NotRunningError);
      await t.engine.openEvents();
      await t.engine.openEvents();
      expect(await read()).toEqual([]);
      await t.engine.closeEvents();
      await t.engine.closeEvents();
      await expect(read()).rejects.toBeInstanceOf(NotRunningError);
      await t.engine.openEvents();
      expect(await read()).toEqual([]);
    });
  });

  it('are not written if none are kept', async () => {
    const silent = t.engineWith({ maxEvents: 0 });
    await silent.enqueue(QUEUE, callOf(['a'], 1, 'silent'));
    await silent.admin.pause(QUEUE);
    expect(await t.engine.lastEvent(QUEUE)).toBe(0);
    expect(await t.events()).toEqual([]);
  });

  it('are kept up to a number; the numbers go on', async () => {
    const few = t.engineWith({ maxEvents: 10 });
    for (let i = 1; i <= 300; i++) await few.enqueue(QUEUE, callOf([`j${i}`], i, 'few'));
    const kept = await t.events();
    expect(await t.engine.lastEvent(QUEUE)).toBe(300);
    // Redis takes them away by the hundred.
    expect(kept[0]!.number).toBeLessThanOrEqual(290);
    expect(kept[0]!.number).toBeGreaterThan(100);
  });

  it('of progress: jobs keep large values up to a number of bytes, and small ones', async () => {
    const bounded = t.engineWith({ progressMaxBytes: 100_000 });
    const ids = Array.from({ length: 60 }, (_, i) => `j${i}`);
    await t.hold(...ids);
    const noting = (id: string, bytes: number) => {
      const progress = JSON.stringify('x'.repeat(bytes - 2));
      return bounded.note(QUEUE, { worker: WORKER, id, name: 'work', attempt: 1, progress });
    };
    const kept = async () => {
      const jobs = await Promise.all(ids.map((id) => t.engine.admin.get(QUEUE, id)));
      return ids.filter((_, i) => jobs[i]!.progress !== null);
    };
    // A value that replaces another counts once.
    for (let i = 0; i < 40; i++) await noting('j0', 9_000);
    for (let i = 1; i < 30; i++) await noting(`j${i}`, 4_096);
    expect(await kept()).toEqual(ids.slice(0, 30));
    for (let i = 30; i < 60; i++) await noting(`j${i}`, 10_000);
    const left = await kept();
    expect(left.slice(0, 29)).toEqual(ids.slice(1, 30));
    expect(left.length - 29).toBeGreaterThanOrEqual(7);
    expect(left.length - 29).toBeLessThanOrEqual(10);
    expect(left.slice(29)).toEqual(ids.slice(60 - (left.length - 29)));
    await noting('j3', 200_000);
    expect((await kept()).filter((id) => Number(id.slice(1)) >= 30)).toEqual([]);
    expect(await kept()).toContain('j3');
  });

  it('with large values are kept up to a number of bytes, small ones by their number alone', async () => {
    const bounded = t.engineWith({ eventsMaxBytes: 10_000 });
    await t.hold('a');
    const noting = (progress: string) =>
      bounded.note(QUEUE, { worker: WORKER, id: 'a', name: 'work', attempt: 1, progress });
    const values = () => t.events().then((all) => all.map(({ progress }) => progress?.length ?? 0));
    for (let i = 0; i < 50; i++) await noting(JSON.stringify('x'.repeat(i % 2 ? 500 : 998)));
    expect((await values()).filter((length) => length > 0)).toHaveLength(50);
    for (let i = 0; i < 20; i++) await noting(JSON.stringify('x'.repeat(3_998)));
    expect(await values()).toEqual([4_000, 4_000, 4_000]);
    await noting('1');
    await noting(JSON.stringify('x'.repeat(19_998)));
    expect(await values()).toEqual([1, 20_000]);
    expect(await t.engine.lastEvent(QUEUE)).toBe(74);
  });
});
