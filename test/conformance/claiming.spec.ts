import { describe, expect, it } from 'vitest';
import { completed, job, LEASE_MS, QUEUE, retried, snoozed, WORKER } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('claiming on %s', (kind) => {
  const t = useEngine(kind);
  const recovering = { beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 5 };

  /** The jobs lose their worker so often. */
  async function stall(times: number, ...ids: string[]): Promise<void> {
    for (let i = 0; i < times; i++) {
      const worker = `${ids[0]} ${i}`;
      // Suspects go to one worker each.
      for (const id of ids) {
        await t.exchanged({ worker: `${worker} ${id}`, seq: 1, want: 100 });
      }
      await t.advance(LEASE_MS);
      for (const id of ids) await t.engine.recover(QUEUE, { worker: `${worker} ${id}`, ...recovering });
      await t.advance(2_000);
      for (const id of ids) await t.engine.recover(QUEUE, { worker: `${worker} ${id}`, ...recovering });
    }
  }

  it('takes no more than wanted, and says how many it holds', async () => {
    await t.add('a', 'b', 'c', 'd');
    expect(await t.exchanged({ want: 0 })).toMatchObject({ claimed: [], held: 0 });
    expect(await t.exchanged({ want: 3 })).toMatchObject({ held: 3 });
    expect(await t.exchanged({ want: 9 })).toMatchObject({ claimed: [{ id: 'd' }], held: 4 });
    expect(await t.exchanged({ want: 9 })).toMatchObject({ claimed: [], held: 4 });
  });

  it('takes at most as many bytes of bodies as the worker asks for, or one job of any size, and leaves the others in place', async () => {
    const large = (id: string, priority = 0) => ({
      ...job(id, priority > 0 ? { priority } : {}),
      body: `job\n1\n\n"${'x'.repeat(1_000)}"`,
    });
    await t.add(large('a'), large('b'), large('c'), large('p', 1), large('q', 2));
    const ids = async (maxBytes: number) => {
      const { claimed, isCut, held } = await t.exchanged({ want: 9, maxBytes });
      return { ids: claimed.map(({ id }) => id), isCut, held };
    };
    expect(await ids(10)).toEqual({ ids: ['a'], isCut: true, held: 1 });
    expect(await ids(3_500)).toEqual({ ids: ['b', 'c', 'p'], isCut: true, held: 4 });
    await t.add('later');
    expect(await ids(100_000)).toEqual({ ids: ['later', 'q'], isCut: false, held: 6 });
  });

  it('leaves a suspect at the head of its line if the worker may not take another one', async () => {
    await t.add('s');
    await stall(2, 's');
    await t.add('a', 'b');
    expect((await t.exchanged({ want: 9, maxBytes: 1 })).claimed).toMatchObject([{ id: 's', stalls: 2 }]);
    expect(await t.claim()).toEqual(['a', 'b']);
  });

  it('takes a thousand at most', async () => {
    for (const part of [0, 1]) await t.add(...Array.from({ length: 600 }, (_, i) => `${part}-${i}`));
    expect((await t.exchanged({ want: 5_000 })).claimed).toHaveLength(1_000);
  });

  it('takes the line first, then by priority, and first in first out within each', async () => {
    await t.add(job('b2', { priority: 2 }), job('a2', { priority: 2 }), job('max', { priority: 2_097_151 }));
    await t.add(job('one', { priority: 1 }), 'plain', job('c2', { priority: 2 }));
    expect(await t.claim()).toEqual(['plain', 'one', 'b2', 'a2', 'c2', 'max']);
  });

  it('keeps the priority of a delayed job, and takes what is due in the order of the times', async () => {
    await t.add(
      job('second', { delayMs: 20 }),
      job('ranked', { delayMs: 10, priority: 1 }),
      job('first', { delayMs: 10 }),
      job('late', { delayMs: 5_000 }),
    );
    await t.advance(20);
    await t.add('plain');
    expect(await t.claim()).toEqual(['plain', 'first', 'second', 'ranked']);
  });

  it('takes what is due at the same ms first in first out, of several calls, and by priority', async () => {
    const ids = ['\u{1F600}', '\uFFFD', 'é', 'z', 'a', '0', 'ab', '\uD7FF', '__proto__'];
    await t.add(...ids.map((id) => job(id, { delayMs: 10 })));
    await t.add(job('y', { dueAt: t.now + 10 }), job('ranked', { dueAt: t.now + 10, priority: 2 }));
    await t.add(job('first', { delayMs: 10, priority: 2 }), job('x', { delayMs: 10 }));
    await t.add(job('before', { delayMs: 9 }), job('behind', { delayMs: 11 }));
    expect((await t.engine.admin.get(QUEUE, 'x'))!.dueAt).toBe(t.now + 10);
    expect((await t.exchanged()).dueInMs).toBe(9);
    await t.advance(10);
    expect(await t.claim()).toEqual(['before', ...ids, 'y', 'x', 'ranked', 'first']);
    expect((await t.exchanged()).dueInMs).toBe(1);
  });

  it('takes retried jobs that are due at the same ms in the order in which they were settled', async () => {
    await t.hold('c', 'b', 'a');
    await t.settle(...['b', 'c', 'a'].map((id) => retried(id, { delayMs: 5 })));
    await t.advance(5);
    expect(await t.claim()).toEqual(['b', 'c', 'a']);
  });

  it('keeps first in first out also for more jobs than fit in one ms', async () => {
    const ids = Array.from({ length: 5_000 }, (_, i) => `j${(i * 7_919) % 5_000}`);
    for (let at = 0; at < ids.length; at += 1_000)
      await t.add(...ids.slice(at, at + 1_000).map((id) => job(id, { dueAt: t.now + 10 })));
    await t.advance(20);
    await t.engine.promote(QUEUE, 1_000);
    const claimed: string[] = [];
    while (claimed.length < ids.length) claimed.push(...(await t.claim(1_000)));
    expect(claimed).toEqual(ids);
  });

  it('promotes at most 250 in one call, and the others with the next calls', async () => {
    await t.add(...Array.from({ length: 300 }, (_, i) => job(`j${i}`, { delayMs: 1 })));
    await t.advance(1);
    expect(await t.exchanged({ want: 400 })).toMatchObject({ held: 250, dueInMs: 0 });
    expect(await t.exchanged({ want: 400 })).toMatchObject({ held: 300, dueInMs: null });
  });

  it('claims nothing while the queue is paused, but settles and promotes', async () => {
    await t.hold('a');
    await t.add('b', job('c', { delayMs: 5 }));
    await t.engine.admin.pause(QUEUE);
    await t.advance(5);
    expect(await t.exchanged({ want: 5, settled: [completed('a')] })).toMatchObject({
      supply: 'paused',
      claimed: [],
      held: 0,
      dueInMs: null,
    });
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 2, delayed: 0, paused: true });
    await t.engine.admin.resume(QUEUE);
    expect(await t.exchanged({ want: 5 })).toMatchObject({ supply: 'empty', held: 2 });
  });

  it('returns whether there are more jobs than it was asked for', async () => {
    await t.add('a', 'b', 'c');
    expect(await t.exchanged({ want: 2 })).toMatchObject({
      claimed: [{ id: 'a' }, { id: 'b' }],
      supply: 'more',
    });
    expect(await t.exchanged({ want: 2 })).toMatchObject({ claimed: [{ id: 'c' }], supply: 'empty' });
    expect(await t.exchanged({ want: 2 })).toMatchObject({ claimed: [], supply: 'empty' });
    expect(await t.exchanged({ want: 0 })).toMatchObject({ claimed: [], supply: 'more' });
    // Shared limits let none start.
    expect(await t.exchanged({ want: -1 })).toMatchObject({ claimed: [], supply: 'empty' });
    await t.add(job('d'));
    expect(await t.exchanged({ want: -1 })).toMatchObject({ claimed: [], supply: 'more' });
    await t.engine.admin.pause(QUEUE);
    expect(await t.exchanged({ want: 0 })).toMatchObject({ claimed: [], supply: 'paused' });
  });

  it('returns when the first lease of another worker ends, never its own', async () => {
    await t.hold('a');
    expect((await t.exchanged()).leaseInMs).toBeNull();
    await t.advance(3_000);
    expect((await t.exchanged({ worker: 'w2' })).leaseInMs).toBe(LEASE_MS - 3_000);
    await t.advance(LEASE_MS);
    expect((await t.exchanged({ worker: 'w2' })).leaseInMs).toBe(0);
  });

  it('renews the lease with every exchange of a worker that holds anything', async () => {
    await t.hold('a');
    await t.advance(5_000);
    await t.exchange();
    expect(await t.engine.overdue(QUEUE, LEASE_MS)).toEqual([{ worker: WORKER, endsInMs: LEASE_MS }]);
    await t.settle(completed('a'));
    expect(await t.engine.overdue(QUEUE, LEASE_MS)).toEqual([]);
  });

  describe('suspects', () => {
    it('come first, one at a time, and only to a worker that may have one', async () => {
      await t.add('s1', 's2');
      await stall(2, 's1', 's2');
      await t.add('plain', 'other');
      expect((await t.exchanged({ want: 5, maySuspect: false })).claimed.map(({ id }) => id)).toEqual([
        'plain',
        'other',
      ]);
      expect((await t.exchanged({ worker: 'w2', want: 5 })).claimed).toMatchObject([{ id: 's1', stalls: 2 }]);
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 1, active: 3 });
    });

    it('that are given back are suspects still, at the head of their line', async () => {
      await t.add('s1', 's2');
      await stall(2, 's1', 's2');
      expect(await t.claim(5)).toEqual(['s1']);
      await t.engine.release(QUEUE, { worker: WORKER, ids: ['s1'], leave: false });
      expect((await t.exchanged({ maySuspect: false, want: 5 })).claimed).toEqual([]);
      expect(await t.claim(1)).toEqual(['s1']);
    });
  });

  it('does not claim a snoozed job before its time', async () => {
    await t.hold('a');
    await t.settle(snoozed('a', 100));
    await t.advance(99);
    expect(await t.claim()).toEqual([]);
    await t.advance(1);
    expect((await t.exchanged({ want: 1 })).claimed).toMatchObject([{ id: 'a', failed: 0 }]);
  });

  it('promotes also when it is asked for that alone, and no more than asked', async () => {
    await t.add(...['a', 'b', 'c'].map((id) => job(id, { delayMs: 10 })), job('d', { delayMs: 60 }));
    expect(await t.engine.promote(QUEUE, 5)).toEqual({ promoted: 0, dueInMs: 10 });
    await t.advance(10);
    expect(await t.engine.promote(QUEUE, 0)).toEqual({ promoted: 0, dueInMs: 0 });
    expect(await t.engine.promote(QUEUE, -3)).toEqual({ promoted: 0, dueInMs: 0 });
    expect(await t.engine.promote(QUEUE, 2)).toEqual({ promoted: 2, dueInMs: 0 });
    expect(await t.engine.promote(QUEUE, 2)).toEqual({ promoted: 1, dueInMs: 50 });
  });
});
