import { describe, expect, it } from 'vitest';
import type { SettledRun } from '#lib/job/outcome.js';
import { dead, job, kept, LEASE_MS, QUEUE, released, retried, snoozed, WORKER } from '../scripts/support.js';
import { OTHERS, ENGINES, useEngine } from './support.js';

/** As a newer version may write it: options that this one does not know, and data in a codec. */
const BODY = 'work\nkz\n{"p":3,"traceparent":"00-ab-cd-01","headers":{"tenant":"a"}}\n~z:AAAA';

describe.each(ENGINES)('what a newer version has written on %s', (kind) => {
  const t = useEngine(kind);
  let workers = 0;
  const worker = () => `w${workers}`;
  const claim = () => t.claim(1, worker());
  const settle = (run: SettledRun) => t.exchanged({ worker: worker(), settled: [run] });
  /** The worker is lost with what it holds, and another takes its place. */
  async function lose(maxStalls = 5): Promise<void> {
    const call = { worker: worker(), beatMs: LEASE_MS / 4, leaseMs: LEASE_MS, maxStalls };
    workers += 1;
    await t.advance(LEASE_MS);
    await t.engine.recover(QUEUE, call);
    await t.advance(LEASE_MS / 4);
    await t.engine.recover(QUEUE, call);
  }

  it('stays as it is in the body of a job through every move', async () => {
    const soon = () => t.advance(60_000);
    const moves: [string, () => Promise<unknown>][] = [
      ['delayed', () => t.add(job('n', { body: BODY, priority: 3, delayMs: 60_000 }))],
      ['waiting', () => t.engine.admin.promoteNow(QUEUE, 'n')],
      ['active', claim],
      ['delayed', () => settle(retried('n', { delayMs: 60_000, priority: 3 }))],
      ['waiting', async () => (await soon(), t.engine.promote(QUEUE, 9))],
      ['active', claim],
      ['delayed', () => settle(snoozed('n', 60_000))],
      ['active', async () => (await soon(), claim())],
      ['waiting', () => settle(released('n', true))],
      ['active', claim],
      ['waiting', () => t.engine.release(QUEUE, { worker: worker(), ids: ['n'], leave: false })],
      ['active', claim],
      ['waiting', () => lose()],
      ['active', claim],
      ['dead', () => lose(1)],
      ['waiting', () => t.engine.upkeep.retryDead(QUEUE, { ids: ['n'] })],
      ['active', claim],
      ['dead', () => settle(dead('n'))],
      ['waiting', () => t.engine.upkeep.retryDead(QUEUE, { reason: 'unrecoverable', limit: 9 })],
      ['active', claim],
      ['completed', () => settle(kept('n', 60_000, '~z:BBBB'))],
    ];
    for (const [place, [state, move]] of moves.entries()) {
      await move();
      const found = await t.engine.admin.get(QUEUE, 'n');
      expect([place, found?.state, found?.body]).toEqual([place, state, BODY]);
    }
    expect(await t.engine.admin.get(QUEUE, 'n')).toMatchObject({ result: '~z:BBBB' });
  });

  it('is unchanged if a schedule adds the job, and if the next occurrence replaces it', async () => {
    const { schedules } = t.engine;
    await schedules.put(QUEUE, { id: 's', revision: 0, record: '{"v":2,"new":1}', nextAt: t.now });
    for (const at of [1, 2]) {
      const { schedule } = await schedules.get(QUEUE, 's');
      const jobs = [{ id: `s@${at}`, body: BODY, at, dueAt: at }];
      const seen = { id: 's', revision: schedule!.revision, seenAt: schedule!.nextAt! };
      await schedules.fire(QUEUE, [{ ...seen, nextAt: t.now + at, limit: null, overlap: 'replace', jobs }]);
      expect(await t.engine.admin.get(QUEUE, `s@${at}`)).toMatchObject({ body: BODY });
    }
    await schedules.pause(QUEUE, 's');
    expect(await schedules.get(QUEUE, 's')).toMatchObject({ schedule: { record: '{"v":2,"new":1}' } });
  });
});

describe.each(ENGINES)('a further line of a queue on %s', (kind) => {
  const t = useEngine(kind);

  it('is addressed through add, bell, lease, settlement, recovery and events', async () => {
    // In memory any name is one; on Redis it is the key of the clock that must be there.
    const line = OTHERS.find((name) => name.includes(':'))!;
    const { engine } = t;
    const jobs = [job('a'), job('b')];
    await engine.enqueue(line, { lane: 'l', seq: 1, rememberMs: 1, withinMs: 5_000, jobs });
    expect(await engine.awaitBell([QUEUE, line], 5_000)).toBe(line);
    const call = { worker: WORKER, leaseMs: LEASE_MS, maySuspect: true, settled: [] };
    const answer = await engine.exchange(line, { ...call, seq: 1, want: 2 });
    expect(answer).toMatchObject({ claimed: [{ id: 'a' }, { id: 'b' }] });
    expect(await engine.beat(line, WORKER, LEASE_MS)).toMatchObject({ held: 2 });
    await engine.exchange(line, { ...call, seq: 2, want: 0, settled: [dead('a')] });
    await t.advance(LEASE_MS);
    expect(await engine.overdue(line, 0)).toEqual([{ worker: WORKER, endsInMs: expect.any(Number) }]);
    const lost = { worker: WORKER, beatMs: 1, leaseMs: LEASE_MS, maxStalls: 5 };
    await engine.recover(line, lost);
    await t.advance(10);
    expect(await engine.recover(line, lost)).toMatchObject({ kind: 'recovered', waiting: ['b'] });
    expect(await engine.admin.counts(line)).toMatchObject({ waiting: 1, dead: 1 });
    await engine.openEvents();
    const [batch] = await engine.readEvents(new Map([[line, 0]]), 5);
    expect(batch).toMatchObject({ queue: line, events: [{ type: 'added' }, { type: 'added' }] });
    expect(await engine.lastEvent(line)).toBeGreaterThan(batch!.last);
    // Nothing of it is in the line that has only the name.
    const [name] = line.split(':') as [string];
    expect(await engine.admin.counts(name)).toMatchObject({ waiting: 0, dead: 0 });
    expect(await engine.lastEvent(name)).toBe(0);
  });
});
