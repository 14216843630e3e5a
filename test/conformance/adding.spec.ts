import { describe, expect, it } from 'vitest';
import { encodeBody } from '#lib/job/job-record.js';
import type { EnqueueJob } from '#lib/contract/engine.js';
import type { JobState } from '#lib/job/job-state.js';
import { callOf, completed, dead, job, kept, QUEUE, released, retried, WORKER } from '../scripts/support.js';
import { until } from '../support/wait.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('adding on %s', (kind) => {
  const t = useEngine(kind);
  const stored = (duplicates: Readonly<Record<string, JobState>> = {}) => ({
    kind: 'stored',
    duplicates: Object.entries(duplicates).map(([id, state]) => ({ id, state })),
  });

  it('stores jobs as they are, first in first out', async () => {
    expect(await t.add('a', 'b', 'c')).toEqual(stored());
    expect((await t.exchanged({ want: 2 })).claimed).toEqual([
      { id: 'a', body: job('a').body, failed: 0, stalls: 0 },
      { id: 'b', body: job('b').body, failed: 0, stalls: 0 },
    ]);
    expect(await t.claim()).toEqual(['c']);
  });

  it('does not change a job that waits, is delayed or runs, and returns its state', async () => {
    await t.hold('active');
    await t.add('waiting', job('later', { delayMs: 5_000 }), job('ranked', { priority: 2 }));
    const again = { later: 'delayed', ranked: 'waiting', waiting: 'waiting', active: 'active' } as const;
    const answer = await t.add(...Object.keys(again).map((id) => job(id, { name: 'another' })), 'new');
    expect(answer).toEqual(stored(again));
    for (const id of Object.keys(again))
      expect((await t.engine.admin.get(QUEUE, id))?.body).toBe(job(id).body);
  });

  it('returns which jobs run and which wait, also for jobs of several workers', async () => {
    await t.add('a', 'b', 'c');
    expect([await t.claim(1, 'w1'), await t.claim(1, 'w2')]).toEqual([['a'], ['b']]);
    expect(await t.add('c', 'b', 'a')).toEqual(stored({ c: 'waiting', b: 'active', a: 'active' }));
  });

  it('puts lifo jobs before all others, the last one first', async () => {
    await t.add('a', job('ranked', { priority: 1 }));
    expect(await t.add(job('x', { lifo: true }), 'b', job('y', { lifo: true }))).toEqual(stored());
    expect(await t.add(job('z', { lifo: true }), job('x', { lifo: true }))).toEqual(stored({ x: 'waiting' }));
    expect(await t.claim()).toEqual(['z', 'y', 'x', 'a', 'b', 'ranked']);
    expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });

  it('wakes a worker for a job at the head', async () => {
    await t.exchanged({ want: 1 });
    await t.add(job('x', { lifo: true }));
    expect(await t.engine.look([{ queue: QUEUE, worker: WORKER }])).toMatchObject([{ work: true }]);
    expect((await t.events()).map(({ type, id }) => [type, id])).toEqual([['added', 'x']]);
  });

  it('lists duplicates by where they would have gone: the line, the priorities, the delayed jobs', async () => {
    const jobs = [job('d', { delayMs: 9 }), job('p', { priority: 1 }), job('w')];
    await t.add(...jobs);
    expect(await t.add(...jobs)).toEqual(stored({ w: 'waiting', p: 'waiting', d: 'delayed' }));
  });

  it('replaces a job that has ended, and one event says so', async () => {
    await t.hold('kept', 'dead');
    await t.settle(kept('kept', 60_000, '1'), dead('dead'));
    const before = await t.engine.lastEvent(QUEUE);
    expect(await t.add('new', job('dead', { name: 'other', delayMs: 9_000 }), 'kept')).toEqual(stored());
    const fresh = { failed: 0, stalls: 0, failure: null, result: null, resultFault: null, endedAt: null };
    expect(await t.engine.admin.get(QUEUE, 'dead')).toMatchObject({ ...fresh, state: 'delayed' });
    expect(await t.engine.admin.get(QUEUE, 'kept')).toMatchObject({ ...fresh, state: 'waiting' });
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({
      waiting: 2,
      delayed: 1,
      completed: 0,
      dead: 0,
      cancelled: 0,
    });
    const said = (await t.events(before)).map(({ type, id, name, reason }) => [type, id, name, reason]);
    expect(said).toEqual([
      ['removed', 'kept', 'work', 'replaced'],
      ['removed', 'dead', 'work', 'replaced'],
      ['added', 'new', 'work', ''],
      ['added', 'kept', 'work', ''],
      ['delayed', 'dead', 'other', ''],
    ]);
    expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });

  it('leaves nothing of a dead job that is replaced: no log, no progress, no stall', async () => {
    await t.hold('x');
    const note = { worker: WORKER, id: 'x', name: 'work', attempt: 1, progress: '1', log: 'l' };
    await t.engine.note(QUEUE, note);
    await t.settle(dead('x'));
    await t.add('x');
    expect(await t.engine.admin.get(QUEUE, 'x')).toMatchObject({ progress: null, logs: [], failure: null });
    expect((await t.exchanged({ want: 1 })).claimed).toEqual([
      { id: 'x', body: job('x').body, failed: 0, stalls: 0 },
    ]);
  });

  it('keeps a job that has ended if the new one asks for that', async () => {
    await t.hold('kept', 'dead', 'other');
    await t.settle(kept('kept', 60_000, '1'), dead('dead'), dead('other'));
    const again = [
      job('kept', { idHeldBy: ['dead', 'completed'] }),
      job('dead', { idHeldBy: ['dead'] }),
      job('other', { idHeldBy: ['completed'] }),
    ];
    expect(await t.add(...again)).toEqual(stored({ kept: 'completed', dead: 'dead' }));
    expect(await t.engine.admin.get(QUEUE, 'other')).toMatchObject({ state: 'waiting' });
  });

  it('leaves the completed job of a call that waits for it, until its result has been read', async () => {
    const body = encodeBody('work', t.now, { awaited: true }, '1');
    await t.hold(job('x', { body }));
    await t.settle(kept('x', 60_000, '1'));
    await t.advance(9_999);
    expect(await t.add('x')).toEqual(stored({ x: 'completed' }));
    await t.advance(1);
    expect(await t.add('x')).toEqual(stored());
  });

  it('takes an id again once its job is gone, or its retention is over, without an event', async () => {
    await t.hold('gone', 'kept');
    await t.settle(completed('gone'), kept('kept', 1_000, '1'));
    expect(await t.add('gone')).toEqual(stored());
    await t.advance(1_000);
    expect(await t.add(job('kept', { idHeldBy: ['completed'] }))).toEqual(stored());
    expect(await t.engine.admin.get(QUEUE, 'kept')).toMatchObject({
      state: 'waiting',
      result: null,
      resultFault: null,
      endedAt: null,
    });
    expect((await t.events()).filter(({ type }) => type === 'removed')).toEqual([]);
  });

  it('takes effect once if a call is repeated, even when the job has run and is gone by then', async () => {
    await t.engine.enqueue(QUEUE, callOf(['a'], 1));
    await t.engine.enqueue(QUEUE, callOf(['b', 'a'], 2));
    await t.claim();
    await t.settle(completed('a'), completed('b'));
    expect(await t.engine.enqueue(QUEUE, callOf(['b', 'a'], 2))).toEqual(stored({ a: 'waiting' }));
    expect(await t.claim()).toEqual([]);
  });

  it('does nothing for a call that comes after a later one of its lane', async () => {
    await t.engine.enqueue(QUEUE, callOf(['a'], 2));
    expect(await t.engine.enqueue(QUEUE, callOf(['b'], 1))).toEqual({ kind: 'stale' });
    expect(await t.engine.enqueue(QUEUE, callOf(['b'], 1, 'another lane'))).toEqual(stored());
    expect(await t.claim()).toEqual(['a', 'b']);
  });

  it('forgets a lane after the time it was to be remembered', async () => {
    const call = { ...callOf(['a'], 1), rememberMs: 20 };
    await t.engine.enqueue(QUEUE, call);
    // On Redis such a key ends by the clock of the machine, whatever the test says the time is.
    const isNew = async () => {
      await t.advance(5);
      const answer = await t.engine.enqueue(QUEUE, call);
      return answer.kind === 'stored' && answer.duplicates.length === 1;
    };
    expect(await until(isNew, { what: 'the same number is a new call' })).toBe(true);
  });

  it('keeps a delayed job until its time, given as a wait or as a moment', async () => {
    await t.add(job('wait', { delayMs: 2_000 }), job('moment', { dueAt: t.now + 1_000 }));
    expect((await t.exchanged({ want: 5 })).dueInMs).toBe(1_000);
    await t.advance(999);
    expect(await t.claim()).toEqual([]);
    await t.advance(1);
    expect((await t.exchanged({ want: 5 })).claimed.map(({ id }) => id)).toEqual(['moment']);
    await t.advance(1_000);
    expect(await t.claim()).toEqual(['wait']);
  });

  it('takes a moment that is past for a job that is due', async () => {
    await t.add(job('past', { dueAt: t.now - 60_000 }));
    expect(await t.engine.admin.get(QUEUE, 'past')).toMatchObject({
      state: 'delayed',
      dueAt: t.now - 60_000,
    });
    expect(await t.claim()).toEqual(['past']);
  });

  it('accepts ids and lanes that are names of other things', async () => {
    const ids = ['__proto__', 'constructor', 'meta', 'wait', '0', 'hasOwnProperty', 'ünï\u{1F600}'];
    expect(await t.engine.enqueue(QUEUE, callOf(ids, 1, '__proto__'))).toEqual(stored());
    expect(await t.engine.enqueue(QUEUE, callOf(ids, 2, '__proto__'))).toEqual({
      kind: 'stored',
      duplicates: ids.map((id) => ({ id, state: 'waiting' })),
    });
    expect(await t.claim()).toEqual(ids);
    await t.settle(...ids.map(completed));
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 0, active: 0 });
  });

  it('keeps queues apart', async () => {
    await t.add('a');
    expect(await t.engine.enqueue('q2', callOf(['a'], 1))).toEqual(stored());
    expect((await t.engine.admin.counts('q3')).waiting).toBe(0);
  });

  describe('to a queue that takes only so many', () => {
    let seq = 0;
    const add = (limit: number, dropOldest: boolean, ...jobs: (string | EnqueueJob)[]) =>
      t.engine.enqueue(QUEUE, {
        ...callOf(jobs, ++seq, 'bounded'),
        maxWaiting: { limit, onFull: dropOldest ? 'dropOldest' : 'reject' },
      });

    it('takes all of a call or none, and says how many wait', async () => {
      expect(await add(3, false, 'a', job('b', { priority: 1 }))).toEqual(stored());
      const full = (waiting: number, ...ids: string[]) => ({
        kind: 'queue-full',
        waiting,
        needNoRoom: new Set(ids),
      });
      expect(await add(3, false, 'c', 'd')).toEqual(full(2));
      expect(await add(3, false, 'c', 'a', 'd', job('b', { priority: 1 }))).toEqual(full(2, 'a', 'b'));
      expect(await t.engine.admin.get(QUEUE, 'c')).toBeNull();
      expect(await add(3, false, 'c', 'a')).toEqual(stored({ a: 'waiting' }));
      expect(await add(3, false, 'a')).toEqual(stored({ a: 'waiting' }));
      expect(await add(3, false, job('later', { delayMs: 1_000 }))).toEqual(stored());
      expect(await add(3, false, job('head', { lifo: true }))).toEqual(full(3));
      await t.claim(1);
      expect(await add(3, false, job('head', { lifo: true }))).toEqual(stored());
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });

    it('refuses no retry, no job that becomes due, and none that comes back', async () => {
      await add(1, false, 'a', job('later', { delayMs: 1_000 }));
      await t.claim(1);
      await add(1, false, 'b');
      await t.settle(released('a'));
      await t.advance(1_000);
      await t.engine.promote(QUEUE, 5);
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 3 });
      expect(await add(1, false, 'b')).toEqual(stored({ b: 'waiting' }));
      expect(await add(1, false, 'c')).toMatchObject({ kind: 'queue-full', waiting: 3 });
    });

    it('removes those that have waited longest, with an event', async () => {
      await t.hold('failed');
      await t.settle(retried('failed', { delayMs: 0 }));
      await add(3, true, 'a', job('p1', { priority: 1 }), job('p2', { priority: 2 }));
      expect(await t.engine.admin.get(QUEUE, 'failed')).toBeNull();
      const before = await t.engine.lastEvent(QUEUE);
      expect(await add(3, true, 'b', 'c')).toEqual({ ...stored(), removed: 2 });
      const ranked = [job('p3', { priority: 3 }), job('p4', { priority: 4 })];
      expect(await add(3, true, ...ranked)).toEqual({ ...stored(), removed: 2 });
      const dropped = { kind: 'stored', duplicates: [{ id: 'p5', dropped: true }] };
      expect(await add(3, true, job('p5', { priority: 5 }))).toEqual(dropped);
      const gone = (await t.events(before)).filter(({ type }) => type === 'removed');
      expect(gone.map(({ id, name, reason }) => [id, name, reason])).toEqual([
        ['a', 'work', 'dropped'],
        ['p2', 'work', 'dropped'],
        ['b', 'work', 'dropped'],
        ['c', 'work', 'dropped'],
        ['p5', 'work', 'dropped'],
      ]);
      expect(await t.claim()).toEqual(['p1', 'p3', 'p4']);
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    });

    it('tells when an add last found no room, once a second', async () => {
      const last = () => t.engine.admin.lastFull(QUEUE);
      await add(1, false, 'a');
      expect(await last()).toBeNull();
      await add(1, false, 'b');
      const first = (await last())!;
      expect(first).toEqual({ at: t.now, limit: 1, onFull: 'reject', group: null });
      await t.advance(900);
      await add(1, true, 'c');
      expect(await last()).toEqual(first);
      await t.advance(100);
      await add(1, true, 'd');
      expect(await last()).toEqual({ ...first, at: t.now, onFull: 'dropOldest' });
      await t.engine.limits.set(QUEUE, 'g', 'code', { maxSize: 1 });
      await t.advance(1_000);
      await t.add(job('e', { group: 'two words' }));
      expect((await last())!.onFull).toBe('dropOldest');
      await t.add(job('f', { group: 'two words' }));
      expect(await last()).toEqual({ at: t.now, limit: 1, onFull: 'reject', group: 'two words' });
      await t.engine.admin.obliterate(QUEUE, true);
      expect(await last()).toBeNull();
    });

    it('removes no more than are too many', async () => {
      await add(3, true, 'a', 'b', 'c');
      expect(await add(3, true, 'd')).toEqual({ ...stored(), removed: 1 });
      expect(await add(4, true, 'e')).toEqual(stored());
      expect(await t.claim()).toEqual(['b', 'c', 'd', 'e']);
    });

    it('tells again how many it removed, if the call is repeated', async () => {
      await add(2, true, 'a', 'b');
      const maxWaiting = { limit: 1, onFull: 'dropOldest' as const };
      const call = { ...callOf(['c', job('p', { priority: 1 })], ++seq, 'bounded'), maxWaiting };
      const answer = { kind: 'stored', duplicates: [{ id: 'p', dropped: true }], removed: 2 };
      for (let i = 0; i < 2; i += 1) expect(await t.engine.enqueue(QUEUE, call)).toEqual(answer);
      expect(await t.claim()).toEqual(['c']);
    });

    const of = (id: string, more: { priority?: number } = {}) =>
      job(id, { group: 'g', ...more, body: encodeBody('work', t.now, { group: 'g', ...more }, '') });

    it('removes the job with the lowest priority that has no group', async () => {
      await t.hold(of('ranked', { priority: 5 }));
      await t.settle(retried('ranked', { delayMs: 0, priority: 5 }));
      await add(3, true, job('p1', { priority: 1 }), job('p2', { priority: 2 }));
      expect(await add(3, true, 'a')).toEqual({ ...stored(), removed: 1 });
      expect((await t.claim()).toSorted()).toEqual(['a', 'p1', 'ranked']);
    });

    it('removes no job of a group, and drops the new one if no other may be removed', async () => {
      await t.hold(of('retried'), of('ranked', { priority: 5 }));
      await t.settle(retried('retried', { delayMs: 0 }), retried('ranked', { delayMs: 0, priority: 5 }));
      expect(await add(3, true, 'a')).toEqual(stored());
      expect(await add(3, true, job('first', { lifo: true }))).toEqual({ ...stored(), removed: 1 });
      expect(await t.engine.admin.get(QUEUE, 'a')).toBeNull();
      await t.engine.admin.remove(QUEUE, 'first');
      await t.add(of('waiting'));
      const before = await t.engine.lastEvent(QUEUE);
      const dropped = ['b', 'c'].map((id) => ({ id, dropped: true }));
      for (let i = 0; i < 2; i += 1)
        expect(
          await t.engine.enqueue(QUEUE, {
            ...callOf(['b', 'c'], 100, 'bounded'),
            maxWaiting: { limit: 3, onFull: 'dropOldest' as const },
          }),
        ).toEqual({ kind: 'stored', duplicates: dropped });
      expect((await t.events(before)).map(({ type, id }) => [type, id])).toEqual([
        ['added', 'b'],
        ['added', 'c'],
        ['removed', 'b'],
        ['removed', 'c'],
      ]);
      expect((await t.claim()).toSorted()).toEqual(['ranked', 'retried', 'waiting']);
    });

    it('drops new jobs of groups too if no other may be removed, and never lets more jobs wait', async () => {
      expect(await add(2, true, 'plain', of('g1'))).toEqual(stored());
      expect(await add(2, true, of('g2'))).toEqual({ ...stored(), removed: 1 });
      expect((await t.engine.admin.counts(QUEUE)).waiting).toBe(2);
      const dropped = (...ids: string[]) => ids.map((id) => ({ id, dropped: true }));
      expect(await add(2, true, of('g3', { priority: 1 }), 'p', of('g4'))).toEqual({
        kind: 'stored',
        duplicates: dropped('p', 'g3', 'g4'),
      });
      expect(await add(3, true, of('g5'), of('g6'), of('g1'))).toEqual({
        kind: 'stored',
        duplicates: [...stored({ g1: 'waiting' }).duplicates, ...dropped('g5')],
      });
      expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
      expect((await t.claim()).toSorted()).toEqual(['g1', 'g2', 'g6']);
      await t.settle(...['g1', 'g2', 'g6'].map((id) => completed(id)));
      expect(await t.claim()).toEqual([]);
    });

    it('removes no new job that has replaced an ended one', async () => {
      const ids = ['plain', 'first', 'ranked'];
      await t.hold(...ids);
      await t.settle(...ids.map((id) => kept(id, 60_000, '1')));
      await t.add(of('g1'), of('g2'));
      const jobs = ['plain', job('first', { lifo: true }), job('ranked', { priority: 1 })];
      expect(await add(2, true, 'new', ...jobs)).toEqual({
        kind: 'stored',
        duplicates: [{ id: 'new', dropped: true }],
      });
      expect(await add(4, true, 'newer')).toEqual({ ...stored(), removed: 2 });
      expect((await t.claim()).toSorted()).toEqual(['g1', 'g2', 'newer', 'ranked']);
    });
  });
});
