import { describe, expect, it } from 'vitest';
import type { RecoverCall } from '#lib/contract/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, FAILURE, LEASE_MS, QUEUE, released, retried, WORKER } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

const BEAT_MS = LEASE_MS / 4;

describe.each(ENGINES)('leases on %s', (kind) => {
  const t = useEngine(kind);
  const get = (id: string) => t.engine.admin.get(QUEUE, id);
  const recover = (more: Partial<RecoverCall> = {}) =>
    t.engine.recover(QUEUE, { worker: WORKER, beatMs: BEAT_MS, leaseMs: LEASE_MS, maxStalls: 5, ...more });
  /** Waits until the lease has certainly ended. */
  async function expire(more: Partial<RecoverCall> = {}): Promise<void> {
    await t.advance(LEASE_MS);
    await recover(more);
    await t.advance(BEAT_MS);
  }
  const taken = { kind: 'recovered', waiting: [], suspects: [], dead: [], cancelled: [], more: false };

  describe('a beat', () => {
    it('renews the lease of a worker that holds jobs, and tells what it holds', async () => {
      await t.hold('a', 'b');
      await t.advance(5_000);
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toEqual({
        kind: 'alive',
        held: 2,
        exchanges: 1,
        cancels: new Map(),
      });
      expect(await t.engine.overdue(QUEUE, LEASE_MS)).toEqual([{ worker: WORKER, endsInMs: LEASE_MS }]);
    });

    it('counts the exchanges of a worker, also those that went beside others', async () => {
      await t.exchange();
      await t.exchange();
      await t.exchange({ pipelined: true, seq: 1 });
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({ exchanges: 3 });
    });

    it('gives no lease to a worker that holds nothing', async () => {
      await t.exchange();
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({ kind: 'alive', held: 0 });
      expect(await t.engine.overdue(QUEUE, LEASE_MS * 9)).toEqual([]);
    });

    it('returns which of its own jobs were cancelled, and why', async () => {
      await t.hold('mine', 'other');
      await t.add('theirs');
      await t.claim(1, 'w2');
      for (const id of ['mine', 'theirs']) await t.engine.admin.cancel(QUEUE, id, `about ${id}`);
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({
        cancels: new Map([['mine', 'about mine']]),
      });
    });

    it('of an unknown worker returns that it is unknown', async () => {
      expect(await t.engine.beat(QUEUE, 'nobody', LEASE_MS)).toEqual({ kind: 'unknown-worker' });
      await t.hold('a');
      await expire();
      await recover();
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toEqual({ kind: 'unknown-worker' });
    });
  });

  describe('overdue', () => {
    it('lists leases that end soon, the earliest first, and those that are too far ahead', async () => {
      await t.add('a', 'b', 'c', 'd');
      await t.exchanged({ worker: 'later', want: 1, leaseMs: 3_000 });
      await t.exchanged({ worker: 'soon', want: 1, leaseMs: 1_000 });
      await t.exchanged({ worker: 'not yet', want: 1, leaseMs: 5_000 });
      await t.exchanged({ worker: 'far', want: 1, leaseMs: LEASE_MS + 1 });
      await t.advance(1_500);
      expect(await t.engine.overdue(QUEUE, 1_500)).toEqual([
        { worker: 'soon', endsInMs: -500 },
        { worker: 'later', endsInMs: 1_500 },
      ]);
      await t.advance(-1_500);
      expect(await t.engine.overdue(QUEUE, 1_500)).toEqual([
        { worker: 'soon', endsInMs: 1_000 },
        { worker: 'far', endsInMs: LEASE_MS + 1 },
      ]);
    });
  });

  describe('recovering', () => {
    it('doubts an expired lease until one heartbeat interval has passed', async () => {
      await t.hold('a');
      expect(await recover()).toEqual({ kind: 'alive' });
      await t.advance(LEASE_MS - 500);
      expect(await recover()).toEqual({ kind: 'doubted', againInMs: BEAT_MS });
      await t.advance(1_000);
      expect(await recover()).toEqual({ kind: 'doubted', againInMs: BEAT_MS - 1_000 });
      await t.advance(BEAT_MS - 1_000);
      expect(await recover()).toEqual({ ...taken, waiting: ['a'] });
      expect(await recover()).toEqual({ kind: 'alive' });
    });

    it('does not recover a worker that has sent a heartbeat since the doubt', async () => {
      await t.hold('a');
      await t.advance(LEASE_MS);
      await recover();
      await t.engine.beat(QUEUE, WORKER, LEASE_MS);
      await t.advance(BEAT_MS);
      expect(await recover()).toEqual({ kind: 'alive' });
      await t.advance(LEASE_MS);
      expect(await recover()).toEqual({ kind: 'doubted', againInMs: BEAT_MS });
    });

    it('restarts a doubt that is very old', async () => {
      await t.hold('a');
      await t.advance(LEASE_MS);
      await recover();
      await t.advance(2 * LEASE_MS + 1);
      expect(await recover()).toEqual({ kind: 'doubted', againInMs: BEAT_MS });
    });

    it('shortens a lease that is too far ahead, because the clock was set back', async () => {
      await t.hold('a');
      await t.advance(-60_000);
      expect(await recover()).toEqual({ kind: 'alive' });
      expect(await t.engine.overdue(QUEUE, LEASE_MS)).toEqual([{ worker: WORKER, endsInMs: LEASE_MS }]);
    });

    it('puts the jobs before all others, by their ids, each with a stall and no attempt', async () => {
      await t.hold('c', 'a', 'b');
      await t.add('waiting');
      await expire();
      expect(await recover()).toEqual({ ...taken, waiting: ['a', 'b', 'c'] });
      expect((await t.exchanged({ worker: 'w2', want: 9 })).claimed).toMatchObject([
        { id: 'a', failed: 0, stalls: 1 },
        { id: 'b', failed: 0, stalls: 1 },
        { id: 'c', failed: 0, stalls: 1 },
        { id: 'waiting', stalls: 0 },
      ]);
    });

    // Only the upkeep found it, up to a minute later.
    it.each(['cancelled', 'dead'])(
      'lets the job go that waits for the end of a job that is now %s',
      async (end) => {
        const unique = {
          digest: 'D',
          forMs: 0,
          delayMs: 0,
          longestMs: 0,
          on: 'keepLast',
          states: ['waiting', 'delayed', 'active'],
        } as const;
        const body = encodeBody('work', t.now, { digest: 'D', isUnique: true }, '1');
        const add = (id: string) => t.add({ id, name: 'work', body, unique });
        const [first, next] = ['0mwtqbbga5wm6p0000A', '0mwtqbbga5wm6p0001A'];
        await add(first);
        expect(await t.claim()).toEqual([first]);
        await add(next);
        if (end === 'cancelled') await t.engine.admin.cancel(QUEUE, first, 'why');
        expect((await get(next))?.state).toBe('delayed');
        const more = { maxStalls: 0 };
        await expire(more);
        expect(await recover(more)).toMatchObject({ [end]: [first] });
        expect((await get(next))?.state).toBe('waiting');
        expect(await t.claim(1, 'w2')).toEqual([next]);
        expect((await t.engine.admin.audit(QUEUE)).violations).toEqual([]);
      },
    );

    it('makes a job a suspect at the second stall, and dead above maxStalls', async () => {
      await t.hold('a');
      const expected = [
        { ...taken, waiting: ['a'] },
        { ...taken, suspects: ['a'] },
        { ...taken, dead: ['a'] },
      ];
      for (const [i, answer] of expected.entries()) {
        const worker = `w${i + 1}`;
        if (i > 0) await t.claim(1, worker);
        await expire({ worker });
        expect(await recover({ worker, maxStalls: 2 })).toEqual(answer);
      }
      expect(await get('a')).toMatchObject({
        state: 'dead',
        stalls: 3,
        failed: 0,
        failure: { name: 'StalledJob', attempt: 0, reason: 'stalled' },
      });
      expect((await t.engine.admin.stats(QUEUE, 1)).total).toMatchObject({ dead: 1, failed: 0 });
    });

    it('ends what was cancelled meanwhile', async () => {
      await t.hold('a', 'b');
      await t.engine.admin.cancel(QUEUE, 'a', 'no longer wanted');
      await expire();
      expect(await recover()).toEqual({ ...taken, waiting: ['b'], cancelled: ['a'] });
      expect(await get('a')).toBeNull();
    });

    it('takes 500 jobs in one call, and returns that there are more', async () => {
      const ids = Array.from({ length: 700 }, (_, i) => `j${i}`);
      await t.hold(...ids);
      await expire();
      const first = await recover();
      expect(first).toMatchObject({ kind: 'recovered', more: true });
      expect(await t.exchange({ settled: ids.map(completed) })).toMatchObject({ kind: 'unknown-worker' });
      const second = await recover();
      expect(second).toMatchObject({ kind: 'recovered', more: false });
      const back = [first, second].flatMap((answer) => (answer as typeof taken).waiting);
      expect(back).toHaveLength(ids.length);
      expect(new Set(back)).toEqual(new Set(ids));
    });

    it('returns that an unknown worker has no lease', async () => {
      expect(await recover({ worker: 'nobody' })).toEqual({ kind: 'alive' });
    });
  });

  describe('adopting', () => {
    it('returns the jobs that a worker holds but does not know, and those that it knows but does not hold', async () => {
      await t.hold('a', 'b');
      await t.settle(retried('b'));
      await t.claim();
      expect(await t.engine.adopt(QUEUE, WORKER, ['a', 'lost', 'lost too'])).toEqual({
        unknown: ['b'],
        lost: ['lost', 'lost too'],
        buried: [],
      });
      expect(await t.engine.adopt(QUEUE, 'nobody', ['a'])).toEqual({ buried: [], unknown: [], lost: ['a'] });
    });
  });

  describe('releasing', () => {
    it('gives back jobs that are held, in the given order, and returns the others', async () => {
      await t.hold('a', 'b', 'c');
      await t.add('waiting');
      const call = { worker: WORKER, ids: ['b', 'never', 'a'], leave: false };
      expect(await t.engine.release(QUEUE, call)).toEqual({ lost: ['never'] });
      expect(await t.engine.release(QUEUE, call)).toEqual({ lost: ['b', 'never', 'a'] });
      expect(await t.claim(9, 'w2')).toEqual(['b', 'a', 'waiting']);
      expect(await t.engine.overdue(QUEUE, LEASE_MS)).toHaveLength(2);
    });

    it('counts no attempt, and keeps what went wrong before', async () => {
      await t.hold('a');
      await t.settle(retried('a'));
      await t.claim();
      await t.settle(released('a'));
      expect(await get('a')).toMatchObject({ state: 'waiting', failed: 1, failure: FAILURE });
    });

    it('ends what was cancelled', async () => {
      await t.hold('a', 'b');
      await t.engine.admin.cancel(QUEUE, 'b', 'why not');
      expect(await t.engine.release(QUEUE, { worker: WORKER, ids: ['a', 'b'], leave: false })).toEqual({
        lost: [],
      });
      expect(await get('b')).toBeNull();
      expect(await t.engine.admin.cancelled(QUEUE, 'b')).toMatchObject({ reason: 'why not' });
    });

    it('forgets a worker that leaves, once it holds nothing', async () => {
      await t.hold('a', 'b');
      await t.engine.release(QUEUE, { worker: WORKER, ids: ['a'], leave: true });
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toMatchObject({ kind: 'alive', held: 1 });
      await t.engine.release(QUEUE, { worker: WORKER, ids: ['b'], leave: true });
      expect(await t.engine.beat(QUEUE, WORKER, LEASE_MS)).toEqual({ kind: 'unknown-worker' });
      expect(await t.engine.overdue(QUEUE, LEASE_MS)).toEqual([]);
    });
  });

  describe('a note', () => {
    const note = (more: object) =>
      t.engine.note(QUEUE, { worker: WORKER, id: 'a', name: 'work', attempt: 1, ...more });

    it('keeps the latest progress, and the last hundred log lines', async () => {
      await t.hold('a');
      for (let i = 0; i < 105; i++) expect(await note({ log: `line ${i}`, progress: `${i}` })).toBe(true);
      await note({ log: 'two\nlines', attempt: 2 });
      const job = await get('a');
      expect(job).toMatchObject({ progress: '104' });
      expect(job!.logs).toHaveLength(100);
      expect(job!.logs.at(0)).toEqual({ attempt: 1, text: 'line 7' });
      expect(job!.logs.slice(-3)).toEqual([
        { attempt: 1, text: 'line 104' },
        { attempt: 2, text: 'two' },
        { attempt: 2, text: 'lines' },
      ]);
    });

    it('of a job that is not held is ignored', async () => {
      await t.hold('a');
      expect(await note({ worker: 'w2', progress: '1', log: 'x' })).toBe(false);
      expect(await note({ id: 'none', progress: '1' })).toBe(false);
      await t.settle(released('a'));
      expect(await note({ progress: '1', log: 'x' })).toBe(false);
      expect(await get('a')).toMatchObject({ progress: null, logs: [] });
    });
  });
});
