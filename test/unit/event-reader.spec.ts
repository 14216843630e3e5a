import { Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { quiet, soon, useReader } from './reader-bench.js';

const bench = useReader();

describe('the connection', () => {
  it('is opened by the first listener and closed after the last, once for all of them', async () => {
    const first = bench.listen('email');
    const second = bench.listen('email');
    const third = bench.listen('sms');
    await soon();
    expect(bench.engine.connections).toBe(1);
    first.leave();
    third.leave();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(bench.engine.connections).toBe(1);
    second.leave();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(bench.engine.connections).toBe(0);
    expect([bench.engine.count('openEvents'), bench.engine.count('closeEvents')]).toEqual([1, 1]);
    expect(bench.states).toEqual(['closed', 'connecting', 'live', 'closed']);
  });

  it('does not exist before there is a listener', async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    expect(bench.engine.calls).toEqual([]);
  });

  it('is kept when a listener comes before the current read has ended', async () => {
    bench.listen('email').leave();
    const { seen } = bench.listen('email');
    await soon();
    bench.engine.push('email', { type: 'added' });
    await quiet();
    expect(seen).toEqual(['added 1']);
    expect(bench.engine.count('openEvents')).toBe(1);
    expect(bench.engine.mostConnections).toBe(1);
  });

  it('is kept for a second after the last listener, also while events come', async () => {
    const events = setInterval(() => bench.engine.push('email', { type: 'added' }), 100);
    for (let n = 0; n < 10; n++) {
      const { seen, leave } = bench.listen('email');
      await vi.advanceTimersByTimeAsync(300);
      expect(seen.length).toBeGreaterThan(0);
      leave();
      await vi.advanceTimersByTimeAsync(700);
    }
    clearInterval(events);
    expect([bench.engine.count('openEvents'), bench.engine.count('closeEvents')]).toEqual([1, 0]);
    expect(bench.states).toEqual(['closed', 'connecting', 'live']);
  });

  it('is opened again for later listeners', async () => {
    bench.listen('email').leave();
    await vi.advanceTimersByTimeAsync(2_000);
    const { seen } = bench.listen('email');
    await soon();
    bench.engine.push('email', { type: 'added' });
    await quiet();
    expect(seen).toEqual(['added 1']);
    expect(bench.engine.count('openEvents')).toBe(bench.engine.count('closeEvents') + 1);
    expect(bench.engine.mostConnections).toBe(1);
  });

  it('costs about one command per second when nothing happens, whatever the number of queues', async () => {
    for (let n = 0; n < 100; n++) bench.listen(`queue-${n}`);
    await vi.advanceTimersByTimeAsync(5_000);
    const before = bench.engine.calls.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(bench.engine.calls.length - before).toBeLessThanOrEqual(75);
  });

  it('is closed at once by close, even while it is being opened', async () => {
    let open!: () => void;
    bench.engine.held.set('openEvents', new Promise<void>((resolve) => (open = resolve)));
    bench.listen('email');
    await quiet();
    const closed = bench.reader.close();
    open();
    await closed;
    await quiet();
    expect(bench.engine.connections).toBe(0);
    expect(bench.states.at(-1)).toBe('closed');
    bench.listen('email');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(bench.engine.count('openEvents')).toBe(1);
  });

  it.each(['lastEvent', 'readEvents'] as const)(
    'is not used again by a round in which %s was in flight',
    async (verb) => {
      let answer!: () => void;
      for (let n = 0; n < 3; n++) bench.engine.push('email', { type: 'added' });
      bench.listen('email');
      await soon();
      bench.engine.cut();
      await quiet();
      bench.listen('email', { since: 1 });
      bench.engine.held.set(verb, new Promise<void>((resolve) => (answer = resolve)));
      const before = bench.engine.count(verb);
      bench.engine.heal();
      await quiet();
      expect(bench.engine.count(verb)).toBe(before + 1);
      await bench.reader.close();
      const calls = bench.engine.calls.length;
      answer();
      await vi.advanceTimersByTimeAsync(5_000);
      expect(bench.engine.calls.slice(calls)).toEqual([]);
    },
  );
});

describe('delivery', () => {
  it('starts with what happens after the listening began', async () => {
    bench.engine.push('email', { type: 'added' }, { type: 'active' });
    const { seen } = bench.listen('email');
    await soon();
    bench.engine.push('email', { type: 'completed' }, { type: 'added' });
    bench.engine.push('email', { type: 'paused' });
    await quiet();
    expect(seen).toEqual(['completed 3', 'added 4', 'paused 5']);
  });

  it('misses nothing between the subscription and the end of a read that does not include the queue yet', async () => {
    bench.listen('sms');
    await soon();
    const { seen } = bench.listen('email');
    await bench.reader.ready('email');
    bench.engine.push('email', { type: 'added' });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen).toEqual(['added 1']);
  });

  it('skips events in an entry that were delivered before, comparing numbers as numbers', async () => {
    for (let n = 0; n < 9; n++) bench.engine.push('email', { type: 'added' });
    bench.engine.push('email', { type: 'active' }, { type: 'completed' }, { type: 'added' });
    const { seen } = bench.listen('email', { since: 10 });
    await soon();
    bench.engine.push('email', { type: 'paused' });
    await quiet();
    expect(seen).toEqual(['completed 11', 'added 12', 'paused 13']);
  });

  it('does not treat skipped numbers as a gap, live or in history', async () => {
    bench.engine.pushUntold('email', 2, 1);
    bench.engine.pushUntold('email', 2, 0);
    const behind = bench.listen('email', { since: 1 });
    const live = bench.listen('email');
    await soon();
    bench.engine.pushUntold('email', 1, 2);
    bench.engine.push('email', { type: 'paused' });
    await soon();
    expect(live.seen).toEqual(['added 7', 'added 8', 'paused 9']);
    expect(behind.seen).toEqual(['added 3', ...live.seen]);
    bench.engine.pushUntold('email', 2, 0);
    await soon();
    expect(bench.engine.calls.at(-1)).toBe('readEvents email>11 1000');
    expect(bench.states).not.toContainEqual(expect.stringContaining('gap'));
  });

  it('delivers to a listener of one job only events of that job', async () => {
    const a = bench.listen('email', { jobId: 'a' });
    const other = bench.listen('email', { jobId: 'a' });
    await soon();
    bench.engine.push(
      'email',
      { type: 'added', id: 'a' },
      { type: 'added', id: 'b' },
      { type: 'completed', id: 'a' },
    );
    await quiet();
    a.leave();
    bench.engine.push('email', { type: 'removed', id: 'a' });
    await quiet();
    expect(a.seen).toEqual(['added 1', 'completed 3']);
    expect(other.seen).toEqual(['added 1', 'completed 3', 'removed 4']);
  });

  it('reads a new queue at once, and older events for a late listener: the waiting read is interrupted', async () => {
    bench.listen('email');
    await soon();
    await quiet();
    expect(bench.engine.calls.at(-1)).toBe('readEvents email>0 1000');
    bench.listen('sms');
    await soon();
    await quiet();
    expect(bench.engine.calls.slice(-2)).toEqual(['interruptEvents', 'readEvents email>0,sms>0 1000']);
    bench.engine.push('sms', { type: 'added' });
    await quiet();
    const { seen } = bench.listen('sms', { since: 0 });
    await soon();
    await quiet();
    expect(seen).toEqual(['added 1']);
    expect(bench.engine.count('interruptEvents')).toBe(2);
  });

  it.each(['before', 'after'] as const)(
    'does not deliver to a new listener whose position is known %s it the events of a read for listeners that left',
    async (when) => {
      let read!: () => void;
      let last!: () => void;
      const { leave } = bench.listen('email');
      bench.listen('sms');
      await soon();
      bench.engine.held.set('readEvents', new Promise<void>((resolve) => (read = resolve)));
      bench.engine.push('sms', { type: 'added' });
      await quiet();
      expect(bench.engine.calls.at(-1)).toBe('readEvents email>0,sms>1 1000');
      bench.engine.push('email', { type: 'added' }, { type: 'active' });
      leave();
      bench.engine.held.set('lastEvent', new Promise<void>((resolve) => (last = resolve)));
      const { seen } = bench.listen('email');
      bench.engine.held.clear();
      for (const answer of when === 'before' ? [last, read] : [read, last]) {
        answer();
        await quiet();
      }
      await bench.reader.ready('email');
      bench.engine.push('email', { type: 'completed' });
      await vi.advanceTimersByTimeAsync(1_000);
      expect(seen).toEqual(['completed 3']);
    },
  );

  it('continues when a listener throws', async () => {
    const log = vi.spyOn(Logger.prototype, 'error').mockImplementation(() => {});
    bench.reader.listen('email', {}, () => {
      throw new Error('mine');
    });
    const { seen } = bench.listen('email');
    await soon();
    bench.engine.push('email', { type: 'added' });
    bench.engine.push('email', { type: 'active' });
    await quiet();
    expect(seen).toEqual(['added 1', 'active 2']);
    expect(log).toHaveBeenCalledTimes(2);
  });

  it('starts after the current event for a listener that subscribes during its delivery', async () => {
    let inner: ReturnType<typeof bench.listen> | undefined;
    bench.reader.listen('email', {}, () => void (inner ??= bench.listen('email')));
    await soon();
    bench.engine.push('email', { type: 'added' }, { type: 'active' });
    await quiet();
    expect(inner?.seen).toEqual(['active 2']);
  });
});

describe('since', () => {
  it('delivers missed events first, then new ones, each once, while others only get new ones', async () => {
    bench.engine.chunk = 2;
    for (let n = 0; n < 7; n++) bench.engine.push('email', { type: 'added' });
    const live = bench.listen('email');
    await soon();
    const resumed = bench.listen('email', { since: 2 });
    const all = bench.listen('email', { since: 0 });
    bench.engine.push('email', { type: 'completed' });
    await soon();
    expect(live.seen).toEqual(['completed 8']);
    expect(resumed.seen).toEqual(['added 3', 'added 4', 'added 5', 'added 6', 'added 7', 'completed 8']);
    expect(all.seen).toEqual(['added 1', 'added 2', ...resumed.seen]);
    expect(bench.states).not.toContainEqual(expect.stringContaining('gap'));
    expect(bench.engine.mostConnections).toBe(1);
  });

  it('loses nothing for a listener with an older since while history is read for another one', async () => {
    for (let n = 0; n < 6; n++) bench.engine.push('email', { type: 'added' });
    let answer!: () => void;
    bench.engine.held.set('readEvents', new Promise<void>((resolve) => (answer = resolve)));
    const younger = bench.listen('email', { since: 4 });
    await quiet();
    expect(bench.engine.calls.at(-1)).toBe('readEvents email>4 1');
    const older = bench.listen('email', { since: 1 });
    bench.engine.held.clear();
    answer();
    await soon();
    expect(younger.seen).toEqual(['added 5', 'added 6']);
    expect(older.seen).toEqual(['added 2', 'added 3', 'added 4', 'added 5', 'added 6']);
    expect(bench.states).not.toContainEqual(expect.stringContaining('gap'));
  });

  it('can be older than those of other listeners that are catching up', async () => {
    bench.engine.chunk = 1;
    for (let n = 0; n < 6; n++) bench.engine.push('email', { type: 'added' });
    let older: ReturnType<typeof bench.listen> | undefined;
    bench.reader.listen('email', { since: 3 }, () => void (older ??= bench.listen('email', { since: 1 })));
    await soon();
    expect(older?.seen).toEqual(['added 2', 'added 3', 'added 4', 'added 5', 'added 6']);
  });

  it('does not delay others: between two chunks of history they get new events', async () => {
    bench.engine.chunk = 1;
    for (let n = 0; n < 50; n++) bench.engine.push('email', { type: 'added' });
    const order: string[] = [];
    bench.reader.listen('sms', {}, (event) => void order.push(`sms ${event.type}`));
    bench.reader.listen('email', { since: 0 }, (event) => {
      if (event.eventId === '10') bench.engine.push('sms', { type: 'added' });
      order.push(event.eventId);
    });
    await soon();
    expect(order.indexOf('sms added')).toBeGreaterThan(order.indexOf('10') - 1);
    expect(order.indexOf('sms added')).toBeLessThan(order.indexOf('13'));
    expect(order).toHaveLength(51);
  });

  it('gets a gap when the history is trimmed, in part or as a whole', async () => {
    for (let n = 0; n < 9; n++) bench.engine.push('email', { type: 'added' });
    bench.engine.trim('email', 6);
    const part = bench.listen('email', { since: 2 });
    await soon();
    expect(part.seen).toEqual(['added 7', 'added 8', 'added 9']);
    expect(bench.states).toContain('gap email 4');

    bench.engine.trim('email', 9);
    const whole = bench.listen('email', { since: 5 });
    await vi.advanceTimersByTimeAsync(1_100);
    expect(bench.states).toContain('gap email 4');
    bench.engine.push('email', { type: 'paused' });
    await quiet();
    expect(whole.seen).toEqual(['paused 10']);
    expect(bench.states.filter((state) => state === 'gap email 4')).toHaveLength(2);
  });

  it('from before the store restarted means everything stored', async () => {
    bench.engine.push('email', { type: 'added' });
    bench.engine.push('email', { type: 'active' });
    const first = bench.listen('email', { since: 900 });
    await soon();
    expect(first.seen).toEqual(['added 1', 'active 2']);
    const second = bench.listen('email', { since: 900 });
    await vi.advanceTimersByTimeAsync(1_100);
    expect(second.seen).toEqual(['added 1', 'active 2']);
    expect(first.seen).toHaveLength(2);
  });

  it('ahead of the last event read delivers only later events', async () => {
    let answer!: () => void;
    const live = bench.listen('email');
    await soon();
    bench.engine.held.set('readEvents', new Promise<void>((resolve) => (answer = resolve)));
    bench.engine.push('email', { type: 'added' }, { type: 'active' }); // another process has read both by now
    await quiet();
    bench.engine.push('email', { type: 'progress' }, { type: 'completed' });
    const ahead = bench.listen('email', { since: 3 });
    await quiet();
    bench.engine.held.clear();
    answer();
    await soon();
    expect(live.seen).toEqual(['added 1', 'active 2', 'progress 3', 'completed 4']);
    expect(ahead.seen).toEqual(['completed 4']);
  });

  it('of a listener that leaves before the store has answered is dropped', async () => {
    bench.engine.push('email', { type: 'added' });
    bench.listen('email');
    await soon();
    const { seen, leave } = bench.listen('email', { since: 9 });
    leave();
    await vi.advanceTimersByTimeAsync(1_100);
    bench.engine.push('email', { type: 'active' });
    await quiet();
    expect(seen).toEqual([]);
  });
});
