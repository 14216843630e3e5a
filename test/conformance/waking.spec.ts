import { describe, expect, it } from 'vitest';
import { callOf, completed, job, LEASE_MS, QUEUE, retried, WORKER } from '../scripts/support.js';
import { within } from '../support/wait.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('waking on %s', (kind) => {
  const t = useEngine(kind);
  /** Whether the bell has been rung and nobody was woken by it; then it is silent again. */
  const wasRung = async () => (await t.engine.awaitBell([QUEUE], 5)) === QUEUE;
  const silence = async () => {
    while (await wasRung());
  };

  it.each<[string, () => Promise<unknown>]>([
    ['a job is added', () => t.add('a')],
    ['a job with a priority is added', () => t.add(job('a', { priority: 1 }))],
    ['the queue goes on', async () => (await t.engine.admin.pause(QUEUE), t.engine.admin.resume(QUEUE))],
    ['somebody rings', () => t.engine.ring(QUEUE)],
  ])('rings once when %s', async (_, act) => {
    await act();
    expect(await wasRung()).toBe(true);
    expect(await wasRung()).toBe(false);
  });

  it('rings when a job is given back, promoted, or retried after its death', async () => {
    const acts: [string, () => Promise<unknown>][] = [
      ['released', () => t.engine.release(QUEUE, { worker: WORKER, ids: ['a'], leave: false })],
      ['promoted by hand', () => t.engine.admin.promoteNow(QUEUE, 'later')],
      ['promoted', async () => (await t.advance(60_000), t.engine.promote(QUEUE, 9))],
      ['retried', () => t.engine.upkeep.retryDead(QUEUE, { ids: ['dead'] })],
    ];
    await t.bury('dead');
    await t.hold('a');
    await t.add(job('later', { delayMs: 50_000 }), job('latest', { delayMs: 60_000 }));
    for (const [what, act] of acts) {
      await silence();
      await act();
      expect([what, await wasRung()]).toEqual([what, true]);
    }
  });

  it('rings when a silent worker has lost its jobs', async () => {
    await t.hold('a');
    const call = { worker: WORKER, beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 5 };
    await t.advance(LEASE_MS);
    await t.engine.recover(QUEUE, call);
    await silence();
    await t.advance(2_000);
    await t.engine.recover(QUEUE, call);
    expect(await wasRung()).toBe(true);
  });

  it('wakes two if a job is due before all others, because the others sleep until the time they know', async () => {
    await t.add(job('a', { delayMs: 5_000 }));
    expect([await wasRung(), await wasRung(), await wasRung()]).toEqual([true, true, false]);
    await t.add(job('later', { delayMs: 6_000 }));
    expect(await wasRung()).toBe(false);
    await t.add(job('sooner', { delayMs: 1_000 }));
    expect([await wasRung(), await wasRung(), await wasRung()]).toEqual([true, true, false]);
  });

  it('wakes two for a retry that is due before all others', async () => {
    await t.hold('a', 'b');
    await silence();
    await t.settle(retried('a', { delayMs: 1_000 }));
    expect([await wasRung(), await wasRung(), await wasRung()]).toEqual([true, true, false]);
    await t.settle(retried('b', { delayMs: 2_000 }));
    expect(await wasRung()).toBe(false);
  });

  it('rings again if a claim has left work, and not if there is none or it may not be claimed', async () => {
    await t.add('a', 'b', job('c', { priority: 1 }));
    await silence();
    await t.claim(2);
    expect(await wasRung()).toBe(true);
    await t.claim(2);
    expect(await wasRung()).toBe(false);
    await t.add('d', 'e');
    await t.engine.admin.pause(QUEUE);
    await silence();
    await t.claim(1);
    expect(await wasRung()).toBe(false);
  });

  it('does not ring for jobs that shared limits let no worker start', async () => {
    await t.add('a');
    await silence();
    await t.exchanged({ want: -1 });
    expect(await wasRung()).toBe(false);
    await t.exchanged({ want: 0 });
    expect(await wasRung()).toBe(true);
  });

  it('rings if a worker that claims nothing frees a slot, and not if other jobs have slots', async () => {
    await t.engine.limits.set(QUEUE, 'q', 'code', { concurrency: 1 });
    await t.add('a', 'b');
    await t.claim(1);
    await silence();
    for (const want of [0, -1]) await t.exchanged({ want });
    expect(await wasRung()).toBe(false);
    await t.exchanged({ want: -1, settled: [completed('a')] });
    expect(await wasRung()).toBe(true);
  });

  it('does not ring if a worker that frees a slot claims on', async () => {
    await t.engine.limits.set(QUEUE, 'q', 'code', { concurrency: 1 });
    await t.add('a');
    await t.claim(1);
    await silence();
    await t.exchanged({ want: 1, settled: [completed('a')] });
    expect(await wasRung()).toBe(false);
  });

  it('does not ring for a job that was there already, nor when a job has ended', async () => {
    await t.hold('a');
    await silence();
    await t.add('a');
    await t.settle(completed('a'));
    expect(await wasRung()).toBe(false);
  });

  it('wakes a waiting worker, with the name of the queue', async () => {
    const waits = t.engine.awaitBell(['q3', QUEUE, 'q2'], 30_000);
    await t.engine.enqueue('q2', callOf(['a'], 1));
    expect(await within(waits, { what: 'the bell' })).toBe('q2');
    expect(await t.engine.awaitBell(['q2'], 5)).toBeNull();
  });

  it('wakes one of several waiting workers', async () => {
    const other = t.engineWith();
    const [first, second] = [t.engine.awaitBell([QUEUE], 30_000), other.awaitBell([QUEUE], 30_000)];
    await t.engine.ring(QUEUE);
    const woken = await within(Promise.race([first.then(() => 0), second.then(() => 1)]), { what: 'a bell' });
    await t.engine.ring(QUEUE);
    expect(await within(woken === 0 ? second : first, { what: 'the other bell' })).toBe(QUEUE);
  });

  it('ends a wait after its time, or when it is interrupted', async () => {
    expect(await t.engine.awaitBell([QUEUE], 5)).toBeNull();
    const waits = t.engine.awaitBell([QUEUE], 30_000);
    t.engine.interruptBell();
    expect(await within(waits, { what: 'the interruption' })).toBeNull();
    await t.engine.ring(QUEUE);
    expect(await wasRung()).toBe(true);
  });

  describe('a look', () => {
    const look = (...queues: string[]) => t.engine.look(queues.map((queue) => ({ queue, worker: WORKER })));
    const nothing = { dueInMs: null, leaseInMs: null, scheduleInMs: null };

    it('leaves out a queue with nothing', async () => {
      expect(await look(QUEUE, 'q2')).toEqual([]);
      await t.hold('a');
      await t.settle(completed('a'));
      expect(await look(QUEUE, 'q2')).toEqual([]);
      expect(await look()).toEqual([]);
    });

    it('returns whether there is work', async () => {
      await t.add('a');
      await t.engine.enqueue('q2', callOf([job('b', { priority: 1 })], 1));
      const found = await look(QUEUE, 'q2', 'q3');
      expect(found.toSorted((a, b) => (a.queue < b.queue ? -1 : 1))).toEqual([
        { queue: QUEUE, work: true, ...nothing },
        { queue: 'q2', work: true, ...nothing },
      ]);
    });

    it('returns no work for a paused queue', async () => {
      await t.add('a', job('b', { delayMs: 700 }));
      await t.engine.admin.pause(QUEUE);
      expect(await look(QUEUE)).toEqual([{ queue: QUEUE, work: false, ...nothing, dueInMs: 700 }]);
    });

    it('returns when the next job is due and when the first lease of another worker ends', async () => {
      await t.hold('a');
      expect(await look(QUEUE)).toEqual([]);
      await t.add('b', job('c', { delayMs: 300 }));
      await t.claim(1, 'w2');
      await t.advance(1_000);
      expect(await look(QUEUE)).toEqual([
        { queue: QUEUE, work: false, dueInMs: 0, leaseInMs: LEASE_MS - 1_000, scheduleInMs: null },
      ]);
    });
  });
});
