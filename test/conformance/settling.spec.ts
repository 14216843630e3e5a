import { describe, expect, it } from 'vitest';
import type { SettledRun } from '#lib/job/outcome.js';
import {
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
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('settling on %s', (kind) => {
  const t = useEngine(kind);
  const get = (id: string) => t.engine.admin.get(QUEUE, id);

  describe('leaves of a job', () => {
    it('that completed nothing', async () => {
      await t.hold('a');
      expect(await t.settle(completed('a'))).toMatchObject({ lost: [], held: 0 });
      expect(await get('a')).toBeNull();
    });

    it('that completed and is kept: its result and how it went, for its retention', async () => {
      await t.hold('a', 'b');
      await t.settle(retried('a'));
      await t.claim();
      await t.settle(kept('a', 5_000, '{"ok":true}'), kept('b', 5_000));
      const ended = { state: 'completed', endedAt: t.now, attempt: 1, durationUs: 1_500, failed: 0 };
      expect(await get('a')).toMatchObject({ ...ended, result: '{"ok":true}', failure: FAILURE });
      expect(await get('b')).toMatchObject({ ...ended, result: null, failure: null });
      await t.advance(5_000);
      expect(await get('a')).toBeNull();
    });

    it('to be retried: what went wrong, how often and when', async () => {
      await t.hold('a', 'b');
      await t.settle(retried('a', { delayMs: 1_000.4 }), retried('b'));
      const failure = { failed: 1, failure: FAILURE, failedAt: t.now };
      expect(await get('a')).toMatchObject({ state: 'delayed', dueAt: t.now + 1_001, ...failure });
      expect(await get('b')).toMatchObject({ state: 'waiting', dueAt: null, ...failure });
      expect((await t.exchanged({ want: 1 })).claimed).toMatchObject([{ id: 'b', failed: 1 }]);
    });

    describe('that failed again and again', () => {
      const attempt = (n: number, message = `no luck ${n}`) => ({
        ...retried('a', {
          failure: {
            name: 'Error',
            message,
            stack: `Error: ${message}\n    at one (a.js:1)\n    at two (b.js:2)`,
            attempt: n,
          },
        }),
        attempt: n,
      });
      async function failing(...runs: SettledRun[]): Promise<number[]> {
        const times: number[] = [];
        for (const run of runs) {
          // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
          await t.settle(run);
          times.push(t.now);
          // oxlint-disable-next-line no-await-in-loop
          await t.claim();
        }
        return times;
      }

      it('the last five attempts in short, and the last one in full', async () => {
        await t.hold('a');
        const times = await failing(...[1, 2, 3, 4, 5, 6, 7].map((n) => attempt(n)));
        const job = await get('a');
        expect(job!.failures).toEqual(
          [3, 4, 5, 6, 7].map((n) => ({
            attempt: n,
            at: times[n - 1],
            durationUs: 1_500,
            worker: WORKER,
            name: 'Error',
            message: `no luck ${n}`,
            stack: 'at one (a.js:1)\nat two (b.js:2)',
          })),
        );
        expect(job!.failure).toMatchObject({
          attempt: 7,
          stack: expect.stringContaining('Error: no luck 7\n'),
        });
        expect(job!.failure).not.toHaveProperty('log');
        expect(job!.failedAt).toBe(times.at(-1));
      });

      it('with messages cut to 500 characters', async () => {
        const texts = [
          '"},{"at":1,"x":"',
          '}],"name":"y',
          '\n{"log":[',
          '\ud83d',
          '\u0000%1%%]',
          'm'.repeat(600),
        ];
        await t.hold('a');
        await failing(...texts.map((text, i) => attempt(i + 1, text)));
        const messages = (await get('a'))!.failures.map(({ message }) => message);
        expect(messages).toEqual(texts.slice(1).map((text) => text.slice(0, 500)));
      });

      it('also once it is dead, but not of an attempt that no handler failed', async () => {
        await t.hold('a');
        await failing(attempt(1));
        await t.settle(dead('a', false));
        const job = await get('a');
        expect(job).toMatchObject({ state: 'dead', failure: { ...FAILURE, reason: 'unrecoverable' } });
        expect(job!.failures).toMatchObject([{ attempt: 1, message: 'no luck 1' }]);
        const page = { state: 'dead', reason: 'unrecoverable', after: null, limit: 10 } as const;
        const brief = await t.engine.admin.jobs(QUEUE, { ...page, brief: true });
        expect(brief.jobs).toMatchObject([{ id: 'a', failures: [], failure: FAILURE }]);
        // Only the last error is searched.
        const found = async (contains: string) =>
          (await t.engine.admin.jobs(QUEUE, { ...page, contains })).jobs.length;
        expect([await found('no luck'), await found('no luck 1')]).toEqual([1, 0]);
        await t.engine.upkeep.retryDead(QUEUE, { ids: ['a'] });
        expect(await get('a')).toMatchObject({ failure: null, failures: [] });
      });
    });

    it('that snoozes: neither an attempt nor an error', async () => {
      await t.hold('a');
      await t.settle(snoozed('a', 700));
      expect(await get('a')).toMatchObject({
        state: 'delayed',
        failed: 0,
        failure: null,
        dueAt: t.now + 700,
      });
    });

    it('that died: why, and when', async () => {
      await t.hold('a', 'b');
      await t.settle(dead('a'), dead('b', false));
      const died = { state: 'dead', endedAt: t.now, failure: { ...FAILURE, reason: 'unrecoverable' } };
      expect(await get('a')).toMatchObject({ ...died, failed: 1 });
      expect(await get('b')).toMatchObject({ ...died, failed: 0 });
    });

    it('that was released: it waits before all others, in the given order', async () => {
      await t.hold('a', 'b');
      await t.add('c');
      await t.settle(released('a'), released('b'));
      expect(await t.claim()).toEqual(['a', 'b', 'c']);
    });
  });

  it('lets a retried job keep its priority, without a delay and after one', async () => {
    await t.hold('low', 'lowLater', 'first');
    await t.add('line');
    await t.settle(
      retried('low', { priority: 9 }),
      retried('lowLater', { priority: 9, delayMs: 5 }),
      retried('first', { priority: 1 }),
    );
    await t.advance(5);
    expect(await t.claim()).toEqual(['line', 'first', 'low', 'lowLater']);
  });

  it('counts an attempt of those jobs of a batch that failed, and not of those that snoozed', async () => {
    const ids = ['a', 'b', 'c', 'd'];
    await t.hold(...ids);
    await t.settle(snoozed('a', 700), retried('b', { delayMs: 700 }), snoozed('c', 700), dead('d'));
    expect(await Promise.all(ids.map(get))).toMatchObject([0, 1, 0, 1].map((failed) => ({ failed })));
    expect((await t.engine.admin.stats(QUEUE, 1)).total).toMatchObject({ failed: 2, dead: 1 });
  });

  describe('is fenced', () => {
    it('by what the worker holds: others come back as lost, and stay as they are', async () => {
      await t.hold('a', 'b');
      await t.add('waits');
      const runs = [completed('a'), kept('waits', 9, '1'), retried('none'), dead('never'), released('waits')];
      const answer = await t.exchanged({ worker: 'thief', settled: runs });
      expect(answer.lost).toEqual(['a', 'waits', 'none', 'never', 'waits']);
      expect((await t.settle(completed('a'), completed('gone'), completed('b'))).lost).toEqual(['gone']);
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({
        waiting: 1,
        active: 0,
        dead: 0,
        completed: 0,
      });
    });

    it('against a job that is named twice: the first outcome counts', async () => {
      await t.hold('a', 'b');
      expect((await t.settle(retried('a'), dead('a'), completed('b'), completed('b'))).lost).toEqual(['a']);
      expect(await get('a')).toMatchObject({ state: 'waiting' });
      await t.hold('c');
      expect((await t.settle(kept('c', 60_000, '1'), kept('c', 60_000, '2'))).lost).toEqual(['c']);
      expect(await get('c')).toMatchObject({ state: 'completed', result: '1' });
      expect((await t.engine.admin.stats(QUEUE, 1)).total).toMatchObject({
        processed: 2,
        failed: 1,
        dead: 0,
      });
    });

    it('by the lease: a worker whose jobs were taken back is unknown', async () => {
      await t.hold('a');
      await t.advance(LEASE_MS);
      const call = { worker: 'w1', beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 5 };
      expect(await t.engine.recover(QUEUE, call)).toEqual({ kind: 'doubted', againInMs: 2_000 });
      await t.advance(2_000);
      expect(await t.engine.recover(QUEUE, call)).toMatchObject({ kind: 'recovered', waiting: ['a'] });
      expect(await t.exchange({ settled: [completed('a')] })).toEqual(
        expect.objectContaining({ kind: 'unknown-worker' }),
      );
      expect(await get('a')).toMatchObject({ state: 'waiting', stalls: 1 });
    });
  });

  describe('repeated', () => {
    it('returns the same answer, and does nothing', async () => {
      await t.hold('a', 'b');
      await t.add('c', 'd');
      const call = {
        seq: 2,
        want: 1,
        settled: [retried('a', { delayMs: 10 }), completed('x'), completed('b')],
      };
      const first = await t.exchange(call);
      expect(first).toMatchObject({ lost: ['x'], claimed: [{ id: 'c' }], held: 1 });
      expect(await t.exchange(call)).toEqual(first);
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 1, delayed: 1, active: 1 });
    });

    it('returns the same jobs, except those that were taken back since', async () => {
      await t.add('a', 'b');
      await t.exchange({ seq: 1, want: 2 });
      await t.engine.release(QUEUE, { worker: 'w1', ids: ['a'], leave: false });
      expect(await t.exchange({ seq: 1, want: 2 })).toMatchObject({ claimed: [{ id: 'b' }] });
    });

    it('late, is stale and does nothing', async () => {
      await t.add('a', 'b');
      await t.exchange({ seq: 1, want: 1 });
      await t.exchange({ seq: 2, want: 0 });
      expect(await t.exchange({ seq: 1, want: 1, settled: [completed('a')] })).toEqual(
        expect.objectContaining({ kind: 'stale' }),
      );
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 1, active: 1 });
    });
  });

  describe('beside another one', () => {
    it('has its own numbers: each can be repeated alone, in any order', async () => {
      await t.hold('a', 'b');
      await t.add('c', 'd', 'e');
      const call = { seq: 2, want: 1, settled: [completed('a')] };
      const pipelined = { seq: 1, pipelined: true, want: 1, settled: [completed('b'), completed('x')] };
      const first = await t.exchange(call);
      const second = await t.exchange(pipelined);
      expect(first).toMatchObject({ lost: [], claimed: [{ id: 'c' }] });
      expect(second).toMatchObject({ lost: ['x'], claimed: [{ id: 'd' }], held: 2 });
      const again = { supply: 'more', dueInMs: null, leaseInMs: null, scheduleInMs: null, held: 2 };
      expect(await t.exchange(call)).toMatchObject({ lost: [], claimed: [{ id: 'c' }], ...again });
      expect(await t.exchange(pipelined)).toMatchObject({ lost: ['x'], claimed: [{ id: 'd' }], ...again });
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 1, active: 2 });
    });

    it('may reach the store first; the other one is still accepted', async () => {
      await t.exchange();
      await t.add('a', 'b');
      expect(await t.exchange({ seq: 1, pipelined: true, want: 1 })).toMatchObject({
        claimed: [{ id: 'a' }],
      });
      expect(await t.exchange({ seq: 2, want: 1 })).toMatchObject({ claimed: [{ id: 'b' }] });
      expect(
        await t.exchange({ seq: 2, pipelined: true, settled: [completed('a'), completed('b')] }),
      ).toMatchObject({
        lost: [],
        held: 0,
      });
    });

    it('late, is stale and does nothing', async () => {
      await t.hold('a');
      await t.exchange({ seq: 1, pipelined: true });
      await t.exchange({ seq: 2, pipelined: true });
      expect(await t.exchange({ seq: 1, pipelined: true, settled: [completed('a')] })).toEqual(
        expect.objectContaining({ kind: 'stale' }),
      );
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ active: 1 });
    });

    it('is from an unknown worker if that has made no exchange alone, or if its jobs were taken back', async () => {
      const unknown = expect.objectContaining({ kind: 'unknown-worker' });
      await t.add('a');
      expect(await t.exchange({ worker: 'new', seq: 1, pipelined: true, want: 1 })).toEqual(unknown);
      await t.claim(1);
      expect(await t.exchange({ seq: 2, pipelined: true })).toEqual(unknown);
      await t.exchange({ seq: 1, pipelined: true });
      await t.advance(LEASE_MS);
      const call = { worker: 'w1', beatMs: 2_000, leaseMs: LEASE_MS, maxStalls: 5 };
      await t.engine.recover(QUEUE, call);
      await t.advance(2_000);
      expect(await t.engine.recover(QUEUE, call)).toMatchObject({ kind: 'recovered', waiting: ['a'] });
      for (const seq of [1, 2]) expect(await t.exchange({ seq, pipelined: true, want: 1 })).toEqual(unknown);
      expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 1, active: 0 });
    });
  });

  it('reports that a job has run before, however it came back', async () => {
    const started = async () => {
      const { claimed } = await t.exchanged({ want: 9 });
      return Object.fromEntries(claimed.map((claim) => [claim.id, claim.started ?? false]));
    };
    await t.hold('new', 'snoozed', 'released', 'failed');
    await t.settle(released('new'), snoozed('snoozed', 0), released('released', true), retried('failed'));
    // That attempts have failed says as much.
    const expected = { new: false, snoozed: true, released: true, failed: false };
    expect(await started()).toEqual(expected);
    // A worker that does not know of them may not have started them either.
    await t.engine.release(QUEUE, { worker: WORKER, ids: Object.keys(expected), leave: false });
    expect(await started()).toEqual(expected);
    expect((await t.engine.admin.get(QUEUE, 'snoozed'))!.failed).toBe(0);
    expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
    await t.settle(completed('snoozed'));
    expect(await t.add('snoozed')).toMatchObject({ duplicates: [] });
    expect(await started()).toEqual({ snoozed: false });
  });

  it('keeps the number of stalls of a job that has completed', async () => {
    await t.hold('a');
    await t.settle({ ...kept('a', 60_000, '1'), stalls: 2 });
    expect(await t.engine.admin.get(QUEUE, 'a')).toMatchObject({ state: 'completed', stalls: 2 });
  });

  it('knows a worker only after its first exchange', async () => {
    expect(await t.exchange({ worker: 'new', seq: 2 })).toEqual(
      expect.objectContaining({ kind: 'unknown-worker' }),
    );
    expect(await t.exchange({ worker: 'new', seq: 1 })).toMatchObject({ kind: 'exchanged' });
  });

  it('counts by day and by name what completed, failed and died', async () => {
    await t.hold(job('a'), job('b', { name: 'mail' }), job('c', { name: 'mail' }), job('__proto__'));
    const named = (run: ReturnType<typeof completed>, name: string) => ({ ...run, name });
    await t.settle(
      completed('a'),
      named(retried('b'), 'mail'),
      named(dead('c'), 'mail'),
      named(completed('__proto__'), '__proto__'),
      named(completed('lost'), 'lost'),
    );
    const { days, total } = await t.engine.admin.stats(QUEUE, 2);
    expect(total).toMatchObject({ processed: 2, failed: 2, dead: 1, cancelled: 0 });
    expect(Object.entries(total.byName)).toEqual(
      expect.arrayContaining([
        ['work', { processed: 1, failed: 0, dead: 0 }],
        ['mail', { processed: 0, failed: 2, dead: 1 }],
        ['__proto__', { processed: 1, failed: 0, dead: 0 }],
      ]),
    );
    expect(Object.keys(total.byName)).toHaveLength(3);
    expect(days.map(({ processed }) => processed)).toEqual([2, 0]);
    expect(days[0]!.date > days[1]!.date).toBe(true);
  });

  it('counts names beyond the first 200 of a day under the empty one', async () => {
    const ids = Array.from({ length: 203 }, (_, i) => `n${i}`);
    await t.hold(...ids.map((id) => job(id, { name: id })));
    await t.settle(...ids.slice(0, 202).map((id) => ({ ...completed(id), name: id })));
    await t.settle({ ...dead('n202'), name: 'n0' });
    const { byName, processed } = (await t.engine.admin.stats(QUEUE, 1)).total;
    expect(processed).toBe(202);
    expect(byName['n199']).toEqual({ processed: 1, failed: 0, dead: 0 });
    expect(byName['n200']).toBeUndefined();
    expect(byName['']).toEqual({ processed: 2, failed: 0, dead: 0 });
    expect(byName['n0']).toEqual({ processed: 1, failed: 1, dead: 1 });
  });
});
