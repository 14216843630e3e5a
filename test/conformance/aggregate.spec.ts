import { describe, expect, it } from 'vitest';
import type { EnqueueJob, KeyClaim } from '#lib/contract/engine.js';
import { decodeBody, encodeBody } from '#lib/job/job-record.js';
import { callOf, completed, FAILURE, QUEUE, retried } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('jobs that collect the data of adds on %s', (kind) => {
  const t = useEngine(kind);
  let ids = 0;
  const madeId = () => `0mwtqbbga5wm6q${(ids++).toString(36).padStart(4, '0')}A`;

  interface Some extends Partial<KeyClaim> {
    readonly priority?: number;
    readonly group?: string;
  }

  /** An item of the key `K`: at the latest after 10 s, or after 3 s without another one; 4 items at most. */
  function item(json: string, { priority, group, ...some }: Some = {}): EnqueueJob {
    const delayMs = some.delayMs ?? 3_000;
    const more = { ...(priority && { priority }), ...(group && { group }) };
    const unique = {
      digest: 'K',
      forMs: delayMs,
      states: [],
      on: 'aggregate' as const,
      delayMs,
      longestMs: 10_000,
      most: 4,
      mostBytes: 1_000,
      ...some,
    };
    const options = { items: 1, digest: unique.digest, delayMs: unique.longestMs, ...more };
    const body = encodeBody('work', t.now, options, `[${json}]`);
    return { id: madeId(), name: 'work', body, unique, delayMs, ...more };
  }
  /** Of each item the job that has it, and how many that has then. */
  async function add(...items: EnqueueJob[]) {
    const answer = await t.add(...items);
    if (answer.kind !== 'stored') throw new Error(answer.kind);
    const others = new Map(answer.duplicates.map((other) => [other.id, other]));
    return items.map(({ id }) => {
      const { holder = id, size = 1 } = others.get(id) ?? {};
      return [holder, size] as const;
    });
  }
  const bodyOf = async (id: string) => decodeBody((await t.engine.admin.get(QUEUE, id))!.body)!;
  const dataOf = async (id: string) => (await bodyOf(id)).data;
  const stateOf = async (id: string) => (await t.engine.admin.get(QUEUE, id))?.state;
  /** Moves due jobs to the line and claims them. */
  const claim = async () => (await t.exchanged({ want: 10 })).claimed.map(({ id }) => id);
  const isClean = async () => expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);

  it('have the items in the order of their adds, and run when no further one has come', async () => {
    const [[job]] = (await add(item('1'))) as [[string, number]];
    await t.advance(2_999);
    expect(await add(item('{"a":"x,y"}'))).toEqual([[job, 2]]);
    await t.advance(2_999);
    expect(await claim()).toEqual([]);
    expect(await add(item('null'))).toEqual([[job, 3]]);
    expect(await stateOf(job)).toBe('delayed');
    await t.advance(3_000);
    expect(await claim()).toEqual([job]);
    expect(await dataOf(job)).toEqual([1, { a: 'x,y' }, null]);
    expect((await bodyOf(job)).options.items).toBe(3);
    await isClean();
  });

  it('run at the latest so long after the first add', async () => {
    const [[job]] = (await add(item('1', { most: 100 }))) as [[string, number]];
    for (let at = 2_500; at < 10_000; at += 2_500) {
      await t.advance(2_500);
      expect((await add(item(String(at), { most: 100 })))[0]![0]).toBe(job);
    }
    await t.advance(2_499);
    expect(await claim()).toEqual([]);
    await t.advance(1);
    expect(await claim()).toEqual([job]);
    expect(await dataOf(job)).toEqual([1, 2_500, 5_000, 7_500]);
  });

  it('run as soon as they are full, and the next item begins another one', async () => {
    const four = await add(item('1'), item('2'), item('3'), item('4'));
    const [first] = four[0]!;
    expect(four[3]).toEqual([first, 4]);
    expect(await stateOf(first)).toBe('waiting');
    const [[second]] = (await add(item('5'))) as [[string, number]];
    expect(second).not.toBe(first);
    expect(await claim()).toEqual([first]);
    expect(await dataOf(second)).toEqual([5]);
    await isClean();
  });

  it('are as many as one call needs', async () => {
    await add(item('0'));
    const answers = await add(...Array.from({ length: 9 }, (_, i) => item(String(i + 1))));
    expect(answers.map(([, size]) => size)).toEqual([2, 3, 4, 1, 2, 3, 4, 1, 2]);
    const jobs = [...new Set(answers.map(([id]) => id))];
    expect(await Promise.all(jobs.map(dataOf))).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
    ]);
    expect(await Promise.all(jobs.map(stateOf))).toEqual(['waiting', 'waiting', 'delayed']);
    expect(await claim()).toEqual(jobs.slice(0, 2));
    await isClean();
  });

  it('take no more bytes than they may; a larger item has a job of its own', async () => {
    const text = (length: number) => JSON.stringify('x'.repeat(length - 2));
    const bytes = { mostBytes: 100 };
    const [[first]] = (await add(item(text(48), bytes))) as [[string, number]];
    // Two brackets, two texts and a comma.
    expect(await add(item(text(49), bytes))).toEqual([[first, 2]]);
    const other = { ...bytes, digest: 'L' };
    // One byte more than 100, in one call.
    const sizes = await add(...[30, 30, 37].map((length) => item(text(length), other)));
    expect(sizes[2]![1]).toBe(1);
    const [[second]] = (await add(item(text(1_000), bytes))) as [[string, number]];
    expect(await stateOf(first)).toBe('waiting');
    const [[third]] = (await add(item('3', bytes))) as [[string, number]];
    expect(await stateOf(second)).toBe('waiting');
    expect([await dataOf(second), await dataOf(third)]).toEqual([['x'.repeat(998)], [3]]);
    await isClean();
  });

  it('take no item once they run, wait for a retry, were promoted or cancelled, or have another time', async () => {
    const begin = async () => (await add(item('1', { most: 100 })))[0]![0];
    const promoted = await begin();
    await t.engine.admin.promoteNow(QUEUE, promoted);
    const running = await begin();
    expect(running).not.toBe(promoted);
    await t.advance(3_000);
    expect(await claim()).toEqual([promoted, running]);
    await t.settle(retried(running, { delayMs: 3_000, failure: FAILURE }), completed(promoted));
    const cancelled = await begin();
    expect(cancelled).not.toBe(running);
    await t.engine.admin.cancel(QUEUE, cancelled, 'why');
    const put = await begin();
    expect(put).not.toBe(cancelled);
    await t.engine.admin.update(QUEUE, { id: put, delayMs: 60_000 });
    expect(await begin()).not.toBe(put);
    expect(await dataOf(put)).toEqual([1]);
    expect(await dataOf(running)).toEqual([1]);
    await isClean();
  });

  it('hold each item once, also if a call comes twice', async () => {
    const [[job]] = (await add(item('0'))) as [[string, number]];
    const call = callOf([item('1'), item('2'), item('3'), item('4')], 7);
    const answer = await t.engine.enqueue(QUEUE, call);
    expect(await t.engine.enqueue(QUEUE, { ...call, isRepeated: true })).toEqual(answer);
    expect(await dataOf(job)).toEqual([0, 1, 2, 3]);
    expect(await dataOf(call.jobs[3]!.id)).toEqual([4]);
  });

  it('are one for each key, with the options of the first add', async () => {
    const added = await add(
      item('1', { priority: 7, group: 'g' }),
      item('2', { digest: 'L' }),
      item('3', { priority: 1, group: 'g' }),
    );
    const [a, b, c] = added.map(([id]) => id);
    expect(c).toBe(a);
    expect(b).not.toBe(a);
    expect((await bodyOf(a!)).options).toMatchObject({ priority: 7, group: 'g', items: 2 });
    await t.advance(3_000);
    expect(new Set(await claim())).toEqual(new Set([a, b]));
  });

  it('are reported by events: delayed for the first add, and one for each call that adds to it', async () => {
    const before = await t.engine.lastEvent(QUEUE);
    const [[job]] = (await add(item('1'), item('2'))) as [[string, number]];
    await add(item('3'), item('4'));
    const events = (await t.events(before)).map(({ type, id }) => [type, id]);
    expect(events).toEqual([
      ['delayed', job],
      ['updated', job],
    ]);
  });

  it('leave no key when they have ended', async () => {
    const [[job]] = (await add(item('1'))) as [[string, number]];
    await t.advance(3_000);
    await claim();
    await t.settle(completed(job));
    expect(await t.engine.upkeep.freeKeys(QUEUE, ['K'])).toBe(1);
    await isClean();
  });

  it.each([
    ['other data', { data: '{"other":true}' }, { other: true }],
    ['another list', { data: '[7,8]' }, [7, 8]],
    ['a priority', { priority: 3 }, [1]],
  ])('take no more items once they were changed: %s', async (_, change, data) => {
    const [[job]] = (await add(item('1'))) as [[string, number]];
    expect(await t.engine.admin.update(QUEUE, { id: job, ...change })).toMatchObject({ kind: 'updated' });
    const [[next]] = (await add(item('2'), item('3'))) as [[string, number]];
    expect(next).not.toBe(job);
    expect([await dataOf(job), await dataOf(next)]).toEqual([data, [2, 3]]);
    await isClean();
    await t.advance(3_000);
    expect(await claim()).toEqual(expect.arrayContaining([job, next]));
    await t.settle(completed(job), completed(next));
    expect(await t.engine.upkeep.freeKeys(QUEUE, ['K'])).toBe(1);
  });

  it('that became full in a call are dropped before the new jobs of that call, if too many wait', async () => {
    const [first, second] = [item('1', { most: 2 }), item('2', { most: 2 })];
    const maxWaiting = { limit: 1, onFull: 'dropOldest' as const };
    const call = { ...callOf([first, second, 'new'], 1, 'bounded'), maxWaiting };
    expect(await t.engine.enqueue(QUEUE, call)).toEqual({
      kind: 'stored',
      duplicates: [{ id: second.id, holder: first.id, state: 'delayed', size: 2 }],
      removed: 1,
    });
    expect(await claim()).toEqual(['new']);
  });
});
