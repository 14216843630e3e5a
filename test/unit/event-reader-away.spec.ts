import { describe, expect, it, vi } from 'vitest';
import { quiet, soon, useReader } from './reader-bench.js';

const bench = useReader();

describe('when Redis is away', () => {
  it('continues after the last delivered event, whatever the rejection was', async () => {
    const { seen } = bench.listen('email');
    await soon();
    bench.engine.push('email', { type: 'added' });
    await quiet();
    for (const error of [new Error('socket closed'), 'a text', undefined]) {
      bench.engine.cut();
      bench.engine.failing.set('readEvents', error);
      await vi.advanceTimersByTimeAsync(20_000);
      bench.engine.push('email', { type: 'active' });
      bench.engine.heal();
      await soon();
    }
    expect(seen).toEqual(['added 1', 'active 2', 'active 3', 'active 4']);
    expect(bench.states.slice(1)).toEqual([
      'connecting',
      'live',
      ...Array.from({ length: 3 }, () => ['lost socket closed', 'live']).flat(),
    ]);
    expect(bench.engine.count('openEvents')).toBe(1);
  });

  it('tries again after 100 ms, then less and less often, at most every second', async () => {
    bench.listen('email');
    await soon();
    bench.engine.failing.set('readEvents', new Error('no'));
    bench.engine.failing.set('lastEvent', new Error('no'));
    await vi.advanceTimersByTimeAsync(1_000); // the block that was under way ends
    const times: number[] = [];
    let known = bench.engine.calls.length;
    for (let ms = 0; ms < 6_000; ms += 50) {
      await vi.advanceTimersByTimeAsync(50);
      if (bench.engine.calls.length > known) times.push(ms);
      known = bench.engine.calls.length;
    }
    const steps = times.slice(1).map((time, n) => time - (times[n] ?? 0));
    expect(steps.at(-1)).toBe(1_000);
    expect(steps).toEqual(steps.toSorted((a, b) => a - b));
    expect(times.length).toBeGreaterThan(5);
    expect(bench.states.filter((state) => state.startsWith('lost'))).toHaveLength(1);
  });

  it('does not wait for the backoff when the link comes up', async () => {
    const { seen } = bench.listen('email');
    await soon();
    bench.engine.cut();
    await vi.advanceTimersByTimeAsync(10_000);
    bench.engine.push('email', { type: 'added' });
    bench.engine.heal();
    await quiet();
    expect(seen).toEqual(['added 1']);
  });

  it('tries to open again and again, and gets its position once it can', async () => {
    bench.engine.cut();
    const { seen } = bench.listen('email');
    const ready = vi.fn<() => void>();
    void bench.reader.ready('email')?.then(ready);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(ready).not.toHaveBeenCalled();
    bench.engine.push('email', { type: 'added' });
    bench.engine.heal();
    await soon();
    expect(ready).toHaveBeenCalledOnce();
    bench.engine.push('email', { type: 'active' });
    await quiet();
    expect(seen).toEqual(['active 2']);
    expect(bench.engine.connections).toBe(1);
  });

  it('stops trying when the last listener leaves', async () => {
    bench.engine.cut();
    const { leave } = bench.listen('email');
    await vi.advanceTimersByTimeAsync(5_000);
    leave();
    await quiet();
    const calls = bench.engine.calls.length;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(bench.engine.calls.length).toBe(calls);
    expect(bench.states.at(-1)).toBe('closed');
  });

  it('logs how many events of which queue were trimmed before they could be read', async () => {
    const { seen } = bench.listen('email');
    bench.listen('sms');
    bench.engine.push('email', { type: 'added' });
    await soon();
    bench.engine.push('email', { type: 'added' });
    await quiet();
    bench.engine.cut();
    for (let n = 0; n < 5; n++) bench.engine.push('email', { type: 'added' });
    bench.engine.trim('email', 6);
    bench.engine.heal();
    await soon();
    expect(seen.at(-1)).toBe('added 7');
    expect(bench.states.slice(-3)).toEqual(['live', 'gap email 4', 'live']);
  });
});

describe('when the store restarts its numbers', () => {
  it('is noticed after a broken connection, for every queue', async () => {
    for (let n = 0; n < 5; n++) bench.engine.push('email', { type: 'added' });
    const email = bench.listen('email');
    const watcher = bench.listen('email', { jobId: 'x' });
    await soon();
    bench.engine.push('email', { type: 'active', id: 'x' });
    await quiet();
    bench.engine.cut();
    bench.engine.flushAll();
    await vi.advanceTimersByTimeAsync(500);
    bench.engine.push('email', { type: 'added', id: 'x' });
    bench.engine.heal();
    await soon();
    bench.engine.push('email', { type: 'completed', id: 'x' });
    await quiet();
    expect(email.seen).toEqual(['active 6', 'added 1', 'completed 2']);
    expect(watcher.seen).toEqual(email.seen);
    expect(bench.states).toContain('gap email null');
  });

  it('is soon noticed without a broken connection', async () => {
    bench.engine.push('email', { type: 'added' });
    bench.engine.push('sms', { type: 'added' });
    const email = bench.listen('email');
    const sms = bench.listen('sms');
    await soon();
    bench.engine.flushAll();
    await vi.advanceTimersByTimeAsync(7_000);
    bench.engine.push('email', { type: 'added' });
    bench.engine.push('sms', { type: 'paused' });
    await quiet();
    expect(email.seen).toEqual(['added 1']);
    expect(sms.seen).toEqual(['paused 1']);
  });

  it('by a failover that lost some, no event older than the last delivered one is delivered again', async () => {
    const { seen } = bench.listen('email');
    await soon();
    for (let n = 0; n < 4; n++) {
      bench.engine.push('email', { type: 'added' });
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(seen).toHaveLength(4);
    bench.engine.cut();
    await vi.advanceTimersByTimeAsync(10);
    expect(bench.engine.rollBack('email', 2)).toBe(2);
    bench.engine.push('email', { type: 'dead' });
    bench.engine.heal();
    await soon();
    expect(seen.slice(4)).toEqual(['dead 3']);
  });
});
