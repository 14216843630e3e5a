import { describe, expect, it } from 'vitest';
import { callOf, completed, job, kept, QUEUE } from '../scripts/support.js';
import { until } from '../support/wait.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('adding on %s', (kind) => {
  const t = useEngine(kind);
  const stored = (duplicates: readonly string[] = []) => ({ kind: 'stored', duplicates });

  it('stores jobs as they are, first in first out', async () => {
    expect(await t.add('a', 'b', 'c')).toEqual(stored());
    expect((await t.exchanged({ want: 2 })).claimed).toEqual([
      { id: 'a', body: job('a').body, failed: 0, stalls: 0 },
      { id: 'b', body: job('b').body, failed: 0, stalls: 0 },
    ]);
    expect(await t.claim()).toEqual(['c']);
  });

  it('leaves a job alone whose id is there in whatever state, and names it', async () => {
    await t.hold('active', 'kept');
    await t.settle(kept('kept', 60_000));
    await t.bury('dead');
    await t.add('waiting', job('later', { delayMs: 5_000 }), job('ranked', { priority: 2 }));
    const again = ['later', 'ranked', 'waiting', 'dead', 'kept', 'active', 'new'];
    const answer = await t.add(...again.map((id) => job(id, { name: 'another' })));
    expect(answer).toEqual(stored(again.slice(0, -1)));
    for (const id of again.slice(0, -1))
      expect((await t.engine.admin.get(QUEUE, id))?.body).toBe(job(id).body);
  });

  it('names duplicates by where they would have gone: the line, the priorities, the delayed', async () => {
    const jobs = [job('d', { delayMs: 9 }), job('p', { priority: 1 }), job('w')];
    await t.add(...jobs);
    expect(await t.add(...jobs)).toEqual(stored(['w', 'p', 'd']));
  });

  it('takes an id again once its job is gone, or its retention is over', async () => {
    await t.hold('gone', 'kept');
    await t.settle(completed('gone'), kept('kept', 1_000, '1'));
    expect(await t.add('gone')).toEqual(stored());
    expect(await t.add('kept')).toEqual(stored(['kept']));
    await t.advance(1_000);
    expect(await t.add('kept')).toEqual(stored());
    expect(await t.engine.admin.get(QUEUE, 'kept')).toMatchObject({
      state: 'waiting',
      result: null,
      resultFault: null,
      endedAt: null,
    });
  });

  it('is told twice and done once, even when the job has run and gone since', async () => {
    await t.engine.enqueue(QUEUE, callOf(['a'], 1));
    await t.engine.enqueue(QUEUE, callOf(['b', 'a'], 2));
    await t.claim();
    await t.settle(completed('a'), completed('b'));
    expect(await t.engine.enqueue(QUEUE, callOf(['b', 'a'], 2))).toEqual(stored(['a']));
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

  it('takes ids and lanes that are names of other things', async () => {
    const ids = ['__proto__', 'constructor', 'meta', 'wait', '0', 'hasOwnProperty', 'ünï\u{1F600}'];
    expect(await t.engine.enqueue(QUEUE, callOf(ids, 1, '__proto__'))).toEqual(stored());
    expect(await t.engine.enqueue(QUEUE, callOf(ids, 2, '__proto__'))).toEqual(stored(ids));
    expect(await t.claim()).toEqual(ids);
    await t.settle(...ids.map(completed));
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 0, active: 0 });
  });

  it('keeps queues apart', async () => {
    await t.add('a');
    expect(await t.engine.enqueue('q2', callOf(['a'], 1))).toEqual(stored());
    expect((await t.engine.admin.counts('q3')).waiting).toBe(0);
  });
});
