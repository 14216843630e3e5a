import { describe, expect, it } from 'vitest';
import { changeOptions, dataTextOf, decodeBody, encodeBody, optionsLineOf } from '#lib/job/job-record.js';
import { completed, dead, job, kept, QUEUE, retried, WORKER } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('changing a job on %s', (kind) => {
  const t = useEngine(kind);
  /** As a newer version writes it: with an option that this one does not know. */
  const body = (id: string, options = {}) =>
    encodeBody(
      'work',
      t.now,
      { attempts: 2, unknown: { later: [] }, ...options },
      JSON.stringify({ of: id }),
    );
  const made = (id: string, more = {}) => job(id, { body: body(id, more), ...more });
  const update = (id: string, change = {}) => t.engine.admin.update(QUEUE, { id, ...change });
  const bodyOf = async (id: string) => (await t.engine.admin.get(QUEUE, id))!.body;
  const isWell = async () => expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
  const waiting = { kind: 'updated', state: 'waiting', dueAt: null };
  const delayed = (inMs: number) => ({ kind: 'updated', state: 'delayed', dueAt: t.now + inMs });

  it('gives it new data in its place, and leaves the rest of its body', async () => {
    await t.add(made('a'), made('b', { delayMs: 5_000 }), made('c', { priority: 3 }));
    const before = await bodyOf('a');
    expect(await update('a', { data: '"new\\ndata"' })).toEqual(waiting);
    expect(await bodyOf('a')).toBe(before.replace('{"of":"a"}', '"new\\ndata"'));
    expect(await update('b', { data: '1' })).toEqual(delayed(5_000));
    expect(await update('c', { data: '1' })).toEqual(waiting);
    expect(await t.claim()).toEqual(['a', 'c']);
    await isWell();
  });

  it('gives it new data only if it has the data that was read', async () => {
    await t.add(made('a'));
    const seenData = dataTextOf(await bodyOf('a'));
    for (const other of ['{"of":"b"}', seenData.slice(1), `x${seenData}`])
      expect(await update('a', { data: '1', seenData: other })).toEqual({ kind: 'changed' });
    expect(await update('a', { data: '2', seenData })).toEqual(waiting);
    expect(await update('a', { data: '3', seenData })).toEqual({ kind: 'changed' });
    expect(dataTextOf(await bodyOf('a'))).toBe('2');
  });

  it('gives a delayed one another time, as a delay or a date, and wakes workers that sleep until the first one', async () => {
    await t.add(made('a', { delayMs: 5_000 }), made('b', { delayMs: 6_000 }));
    expect(await update('b', { delayMs: 1_000 })).toEqual(delayed(1_000));
    expect(await update('a', { dueAt: t.now + 2_000 })).toEqual(delayed(2_000));
    expect((await t.exchanged({ want: 5 })).dueInMs).toBe(1_000);
    await t.advance(2_000);
    expect(await t.claim()).toEqual(['b', 'a']);
    await isWell();
  });

  it('runs a delayed one now, with its priority or another one', async () => {
    await t.add(...['a', 'b', 'c'].map((id) => made(id, { delayMs: 5_000, priority: 7 })), 'd');
    for (const [id, change] of Object.entries({
      a: { delayMs: 0 },
      b: { dueAt: t.now - 1, priority: 2 },
      c: { delayMs: 0, priority: 0 },
    }))
      expect(await update(id, change)).toEqual(waiting);
    expect(await t.claim()).toEqual(['d', 'c', 'b', 'a']);
    await isWell();
  });

  it('gives a delay to one that a worker gave back to its group, which keeps its priority', async () => {
    const [x, y, z] = ['x', 'y', 'z'].map((id) => made(id, { group: 'g', priority: id === 'z' ? 3 : 7 }));
    await t.add(x!, y!);
    const ids = await t.claim();
    await t.engine.release(QUEUE, { worker: WORKER, ids, leave: false });
    expect(await t.claim(1)).toEqual(['x']);
    expect(await update('y', { delayMs: 1_000 })).toEqual(delayed(1_000));
    await t.advance(1_000);
    await t.add(z!);
    expect(await t.claim()).toEqual(['z', 'y']);
    await isWell();
  });

  it('gives a waiting one a delay, which keeps its priority', async () => {
    await t.add(made('a'), made('b', { priority: 7 }), made('c', { priority: 8 }));
    expect(await update('a', { delayMs: 1_000 })).toEqual(delayed(1_000));
    expect(await update('b', { dueAt: t.now + 1_000 })).toEqual(delayed(1_000));
    expect(await t.claim(1)).toEqual(['c']);
    await t.advance(1_000);
    expect(await t.claim()).toEqual(['a', 'b']);
    await isWell();
  });

  it('gives a waiting one another priority: it goes to the end of that priority, unless it is the same', async () => {
    await t.add(made('a'), made('b'), made('c', { priority: 5 }), made('d', { priority: 5 }));
    expect(await update('a', { priority: 5 })).toEqual(waiting);
    expect(await update('c', { priority: 5 })).toEqual(waiting);
    expect(await update('b', { priority: 0 })).toEqual(waiting);
    expect(await update('d', { priority: 0 })).toEqual(waiting);
    expect(await t.claim()).toEqual(['b', 'd', 'c', 'a']);
    await isWell();
  });

  it('gives a delayed one another priority for later', async () => {
    await t.add(made('a', { delayMs: 1_000 }), made('b', { delayMs: 1_000, priority: 3 }));
    expect(await update('a', { priority: 3 })).toEqual(delayed(1_000));
    expect(await update('b', { priority: 0 })).toEqual(delayed(1_000));
    await t.advance(1_000);
    expect(await t.claim()).toEqual(['b', 'a']);
    await isWell();
  });

  it('writes new options only if the stored ones are those that the caller read', async () => {
    await t.add(made('a', { priority: 4 }));
    const seen = optionsLineOf(await bodyOf('a'))!;
    const changed = changeOptions(seen, { priority: 9, runnableAt: t.now + 50 });
    const call = { priority: 9, delayMs: 50, options: { seen, changed } };
    expect(await update('a', { ...call, options: { seen: '{}', changed } })).toEqual({ kind: 'changed' });
    expect(await update('a', call)).toEqual(delayed(50));
    expect(await bodyOf('a')).toContain('{"a":2,"p":9,"later":[],"d":');
    expect(decodeBody(await bodyOf('a'))?.options).toMatchObject({ priority: 9, runnableAt: t.now + 50 });
  });

  it('changes nothing of a job that runs, has ended, does not exist or has another name, and returns why', async () => {
    await t.hold('active', 'dead', 'kept', 'gone');
    await t.settle(dead('dead'), kept('kept', 1_000), completed('gone'));
    await t.add('a');
    const change = { data: '1', delayMs: 5, priority: 2 };
    const last = await t.engine.lastEvent(QUEUE);
    for (const [id, answer] of Object.entries({
      active: 'active',
      dead: 'dead',
      kept: 'completed',
      gone: 'not-found',
      a: 'unreadable',
    }))
      expect(await update(id, change)).toEqual({ kind: answer });
    await t.add(made('b'));
    expect(await update('b', { ...change, name: 'other' })).toEqual({ kind: 'other-name' });
    expect(await bodyOf('b')).toBe(body('b'));
    expect((await t.events(last)).filter(({ type }) => type === 'updated')).toEqual([]);
    await t.advance(1_000);
    expect(await update('kept', change)).toEqual({ kind: 'not-found' });
  });

  it('writes an event', async () => {
    await t.add(made('a'));
    await update('a', { data: '1' });
    expect((await t.events()).at(-1)).toMatchObject({ type: 'updated', id: 'a', name: 'work' });
  });

  it('takes new data from the worker that holds it, for the next attempt, and from no other', async () => {
    await t.hold(made('a'));
    const call = { worker: WORKER, id: 'a', name: 'work', attempt: 1, data: '{"step":2}' };
    expect(await t.engine.note(QUEUE, { ...call, worker: 'another' })).toBe(false);
    expect(await bodyOf('a')).toBe(body('a'));
    expect(await t.engine.note(QUEUE, call)).toBe(true);
    expect((await t.events()).at(-1)).toMatchObject({ type: 'updated', id: 'a', name: 'work' });
    const [next] = (await t.exchanged({ settled: [retried('a')], want: 1 })).claimed;
    expect(decodeBody(next!.body)).toMatchObject({
      name: 'work',
      data: { step: 2 },
      options: { attempts: 2 },
    });
  });

  it('retries a dead job with other data', async () => {
    await t.bury(made('a'), made('b'));
    expect(await t.engine.upkeep.retryDead(QUEUE, { ids: ['a'], data: '{"to":1}' })).toEqual({
      retried: ['a'],
    });
    expect(await bodyOf('a')).toBe(body('a').replace('{"of":"a"}', '{"to":1}'));
    expect(await bodyOf('b')).toBe(body('b'));
  });
});
