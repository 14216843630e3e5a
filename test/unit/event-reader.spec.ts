import assert from 'node:assert/strict';
import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EventReader } from '#lib/events/event-reader.js';
import type { EventsStatus } from '#lib/events/event-status.js';
import { FakeEventEngine } from './fake-event-engine.js';

let engine: FakeEventEngine;
let reader: EventReader;
let states: string[];

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(0);
  engine = new FakeEventEngine();
  reader = new EventReader(engine);
  states = [];
  reader.status.status$.subscribe((status) => void states.push(say(status)));
});

afterEach(async () => {
  await reader.close();
  assert.equal(engine.connections, 0);
  await vi.advanceTimersByTimeAsync(0);
  assert.equal(engine.linkListeners, 0);
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function say(status: EventsStatus): string {
  if (status.state === 'gap') return `gap ${status.queue} ${status.missed}`;
  return status.state === 'lost' ? `lost ${status.error.message}` : status.state;
}

/** Everything that can happen without time passing has happened. */
const quiet = () => vi.advanceTimersByTimeAsync(0);
/** Short reads and backoffs are over; a block is not. */
const soon = () => vi.advanceTimersByTimeAsync(150);

function listen(queue: string, options: { since?: number; jobId?: string } = {}) {
  const seen: string[] = [];
  const leave = reader.listen(queue, options, (event) => void seen.push(`${event.type} ${event.id}`));
  return { seen, leave };
}

describe('the connection', () => {
  it('is opened by the first listener and closed after the last, once for all of them', async () => {
    const first = listen('email');
    const second = listen('email');
    const third = listen('sms');
    await soon();
    expect(engine.connections).toBe(1);
    first.leave();
    third.leave();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(engine.connections).toBe(1);
    second.leave();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(engine.connections).toBe(0);
    expect([engine.count('openEvents'), engine.count('closeEvents')]).toEqual([1, 1]);
    expect(states).toEqual(['closed', 'connecting', 'live', 'closed']);
  });

  it('does not exist before somebody listens', async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    expect(engine.calls).toEqual([]);
  });

  it('is kept when somebody comes before the running read has ended', async () => {
    listen('email').leave();
    const { seen } = listen('email');
    await soon();
    engine.push('email', { type: 'added' });
    await quiet();
    expect(seen).toEqual(['added 1']);
    expect(engine.count('openEvents')).toBe(1);
    expect(engine.mostConnections).toBe(1);
  });

  it('is opened anew for those who come later', async () => {
    listen('email').leave();
    await vi.advanceTimersByTimeAsync(1_000);
    const { seen } = listen('email');
    await soon();
    engine.push('email', { type: 'added' });
    await quiet();
    expect(seen).toEqual(['added 1']);
    expect(engine.count('openEvents')).toBe(engine.count('closeEvents') + 1);
    expect(engine.mostConnections).toBe(1);
  });

  it('costs about one command per second when nothing happens, whatever the number of queues', async () => {
    for (let n = 0; n < 100; n++) listen(`queue-${n}`);
    await vi.advanceTimersByTimeAsync(5_000);
    const before = engine.calls.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(engine.calls.length - before).toBeLessThanOrEqual(75);
  });

  it('is closed at once by close, even while it is being opened', async () => {
    let open!: () => void;
    engine.held.set('openEvents', new Promise<void>((resolve) => (open = resolve)));
    listen('email');
    await quiet();
    const closed = reader.close();
    open();
    await closed;
    await quiet();
    expect(engine.connections).toBe(0);
    expect(states.at(-1)).toBe('closed');
    listen('email');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(engine.count('openEvents')).toBe(1);
  });

  it.each(['lastEvent', 'readEvents'] as const)(
    'is not used again by a round in which %s was under way',
    async (verb) => {
      let answer!: () => void;
      for (let n = 0; n < 3; n++) engine.push('email', { type: 'added' });
      listen('email');
      await soon();
      engine.cut();
      await quiet();
      listen('email', { since: 1 });
      engine.held.set(verb, new Promise<void>((resolve) => (answer = resolve)));
      const before = engine.count(verb);
      engine.heal();
      await quiet();
      expect(engine.count(verb)).toBe(before + 1);
      await reader.close();
      const calls = engine.calls.length;
      answer();
      await vi.advanceTimersByTimeAsync(5_000);
      expect(engine.calls.slice(calls)).toEqual([]);
    },
  );
});

describe('telling', () => {
  it('starts with what happens after the listening began', async () => {
    engine.push('email', { type: 'added' }, { type: 'active' });
    const { seen } = listen('email');
    await soon();
    engine.push('email', { type: 'completed' }, { type: 'added' });
    engine.push('email', { type: 'paused' });
    await quiet();
    expect(seen).toEqual(['completed 3', 'added 4', 'paused 5']);
  });

  it('misses nothing between joining and the end of a read that does not know the queue yet', async () => {
    listen('sms');
    await soon();
    const { seen } = listen('email');
    await reader.ready('email');
    engine.push('email', { type: 'added' });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen).toEqual(['added 1']);
  });

  it('passes over events in an entry that were told before, comparing numbers as numbers', async () => {
    for (let n = 0; n < 9; n++) engine.push('email', { type: 'added' });
    engine.push('email', { type: 'active' }, { type: 'completed' }, { type: 'added' });
    const { seen } = listen('email', { since: 10 });
    await soon();
    engine.push('email', { type: 'paused' });
    await quiet();
    expect(seen).toEqual(['completed 11', 'added 12', 'paused 13']);
  });

  it('does not take numbers that are left out for a gap, live or behind', async () => {
    engine.pushUntold('email', 2, 1);
    engine.pushUntold('email', 2, 0);
    const behind = listen('email', { since: 1 });
    const live = listen('email');
    await soon();
    engine.pushUntold('email', 1, 2);
    engine.push('email', { type: 'paused' });
    await soon();
    expect(live.seen).toEqual(['added 7', 'added 8', 'paused 9']);
    expect(behind.seen).toEqual(['added 3', ...live.seen]);
    engine.pushUntold('email', 2, 0);
    await soon();
    expect(engine.calls.at(-1)).toBe('readEvents email>11 1000');
    expect(states).not.toContainEqual(expect.stringContaining('gap'));
  });

  it('tells a listener of one job only of that job', async () => {
    const a = listen('email', { jobId: 'a' });
    const other = listen('email', { jobId: 'a' });
    await soon();
    engine.push(
      'email',
      { type: 'added', id: 'a' },
      { type: 'added', id: 'b' },
      { type: 'completed', id: 'a' },
    );
    await quiet();
    a.leave();
    engine.push('email', { type: 'removed', id: 'a' });
    await quiet();
    expect(a.seen).toEqual(['added 1', 'completed 3']);
    expect(other.seen).toEqual(['added 1', 'completed 3', 'removed 4']);
  });

  it.each(['before', 'after'] as const)(
    'does not tell a newcomer whose place is known %s it what a read brings that was begun for those who left',
    async (when) => {
      let read!: () => void;
      let last!: () => void;
      const { leave } = listen('email');
      listen('sms');
      await soon();
      engine.held.set('readEvents', new Promise<void>((resolve) => (read = resolve)));
      engine.push('sms', { type: 'added' });
      await quiet();
      expect(engine.calls.at(-1)).toBe('readEvents email>0,sms>1 1000');
      engine.push('email', { type: 'added' }, { type: 'active' });
      leave();
      engine.held.set('lastEvent', new Promise<void>((resolve) => (last = resolve)));
      const { seen } = listen('email');
      engine.held.clear();
      for (const answer of when === 'before' ? [last, read] : [read, last]) {
        answer();
        await quiet();
      }
      await reader.ready('email');
      engine.push('email', { type: 'completed' });
      await vi.advanceTimersByTimeAsync(1_000);
      expect(seen).toEqual(['completed 3']);
    },
  );

  it('goes on when a listener throws', async () => {
    const log = vi.spyOn(Logger.prototype, 'error').mockImplementation(() => {});
    reader.listen('email', {}, () => {
      throw new Error('mine');
    });
    const { seen } = listen('email');
    await soon();
    engine.push('email', { type: 'added' });
    engine.push('email', { type: 'active' });
    await quiet();
    expect(seen).toEqual(['added 1', 'active 2']);
    expect(log).toHaveBeenCalledTimes(2);
  });

  it('starts after the present event for those who begin to listen while it is told', async () => {
    let inner: ReturnType<typeof listen> | undefined;
    reader.listen('email', {}, () => void (inner ??= listen('email')));
    await soon();
    engine.push('email', { type: 'added' }, { type: 'active' });
    await quiet();
    expect(inner?.seen).toEqual(['active 2']);
  });
});

describe('since', () => {
  it('tells the missed first, then the news, each once, while others only get the news', async () => {
    engine.chunk = 2;
    for (let n = 0; n < 7; n++) engine.push('email', { type: 'added' });
    const live = listen('email');
    await soon();
    const resumed = listen('email', { since: 2 });
    const all = listen('email', { since: 0 });
    engine.push('email', { type: 'completed' });
    await soon();
    expect(live.seen).toEqual(['completed 8']);
    expect(resumed.seen).toEqual(['added 3', 'added 4', 'added 5', 'added 6', 'added 7', 'completed 8']);
    expect(all.seen).toEqual(['added 1', 'added 2', ...resumed.seen]);
    expect(states).not.toContainEqual(expect.stringContaining('gap'));
    expect(engine.mostConnections).toBe(1);
  });

  it('loses nothing for one who comes with an older since while history is read for another', async () => {
    for (let n = 0; n < 6; n++) engine.push('email', { type: 'added' });
    let answer!: () => void;
    engine.held.set('readEvents', new Promise<void>((resolve) => (answer = resolve)));
    const younger = listen('email', { since: 4 });
    await quiet();
    expect(engine.calls.at(-1)).toBe('readEvents email>4 1');
    const older = listen('email', { since: 1 });
    engine.held.clear();
    answer();
    await soon();
    expect(younger.seen).toEqual(['added 5', 'added 6']);
    expect(older.seen).toEqual(['added 2', 'added 3', 'added 4', 'added 5', 'added 6']);
    expect(states).not.toContainEqual(expect.stringContaining('gap'));
  });

  it('can be older than those of others who are catching up', async () => {
    engine.chunk = 1;
    for (let n = 0; n < 6; n++) engine.push('email', { type: 'added' });
    let older: ReturnType<typeof listen> | undefined;
    reader.listen('email', { since: 3 }, () => void (older ??= listen('email', { since: 1 })));
    await soon();
    expect(older?.seen).toEqual(['added 2', 'added 3', 'added 4', 'added 5', 'added 6']);
  });

  it('does not hold up others: between two chunks of history they get their news', async () => {
    engine.chunk = 1;
    for (let n = 0; n < 50; n++) engine.push('email', { type: 'added' });
    const order: string[] = [];
    reader.listen('sms', {}, (event) => void order.push(`sms ${event.type}`));
    reader.listen('email', { since: 0 }, (event) => {
      if (event.id === '10') engine.push('sms', { type: 'added' });
      order.push(event.id);
    });
    await soon();
    expect(order.indexOf('sms added')).toBeGreaterThan(order.indexOf('10') - 1);
    expect(order.indexOf('sms added')).toBeLessThan(order.indexOf('13'));
    expect(order).toHaveLength(51);
  });

  it('is told of a gap when the history is trimmed, in part or as a whole', async () => {
    for (let n = 0; n < 9; n++) engine.push('email', { type: 'added' });
    engine.trim('email', 6);
    const part = listen('email', { since: 2 });
    await soon();
    expect(part.seen).toEqual(['added 7', 'added 8', 'added 9']);
    expect(states).toContain('gap email 4');

    engine.trim('email', 9);
    const whole = listen('email', { since: 5 });
    await vi.advanceTimersByTimeAsync(1_100);
    expect(states).toContain('gap email 4');
    engine.push('email', { type: 'paused' });
    await quiet();
    expect(whole.seen).toEqual(['paused 10']);
    expect(states.filter((state) => state === 'gap email 4')).toHaveLength(2);
  });

  it('of an earlier life of the store means everything it holds', async () => {
    engine.push('email', { type: 'added' });
    engine.push('email', { type: 'active' });
    const first = listen('email', { since: 900 });
    await soon();
    expect(first.seen).toEqual(['added 1', 'active 2']);
    const second = listen('email', { since: 900 });
    await vi.advanceTimersByTimeAsync(1_100);
    expect(second.seen).toEqual(['added 1', 'active 2']);
    expect(first.seen).toHaveLength(2);
  });

  it('ahead of what was read here tells only what comes after it', async () => {
    let answer!: () => void;
    const live = listen('email');
    await soon();
    engine.held.set('readEvents', new Promise<void>((resolve) => (answer = resolve)));
    engine.push('email', { type: 'added' }, { type: 'active' }); // another process has read both by now
    await quiet();
    engine.push('email', { type: 'progress' }, { type: 'completed' });
    const ahead = listen('email', { since: 3 });
    await quiet();
    engine.held.clear();
    answer();
    await soon();
    expect(live.seen).toEqual(['added 1', 'active 2', 'progress 3', 'completed 4']);
    expect(ahead.seen).toEqual(['completed 4']);
  });

  it('given by one who leaves before the store has answered is forgotten', async () => {
    engine.push('email', { type: 'added' });
    listen('email');
    await soon();
    const { seen, leave } = listen('email', { since: 9 });
    leave();
    await vi.advanceTimersByTimeAsync(1_100);
    engine.push('email', { type: 'active' });
    await quiet();
    expect(seen).toEqual([]);
  });
});

describe('when Redis is away', () => {
  it('goes on after the last event told, whatever the rejection was', async () => {
    const { seen } = listen('email');
    await soon();
    engine.push('email', { type: 'added' });
    await quiet();
    for (const error of [new Error('socket closed'), 'a text', undefined]) {
      engine.cut();
      engine.failing.set('readEvents', error);
      await vi.advanceTimersByTimeAsync(20_000);
      engine.push('email', { type: 'active' });
      engine.heal();
      await soon();
    }
    expect(seen).toEqual(['added 1', 'active 2', 'active 3', 'active 4']);
    expect(states.slice(1)).toEqual([
      'connecting',
      'live',
      ...Array.from({ length: 3 }, () => ['lost socket closed', 'live']).flat(),
    ]);
    expect(engine.count('openEvents')).toBe(1);
  });

  it('tries again after 100 ms, then less and less often, at most every second', async () => {
    listen('email');
    await soon();
    engine.failing.set('readEvents', new Error('no'));
    engine.failing.set('lastEvent', new Error('no'));
    await vi.advanceTimersByTimeAsync(1_000); // the block that was under way ends
    const times: number[] = [];
    let known = engine.calls.length;
    for (let ms = 0; ms < 6_000; ms += 50) {
      await vi.advanceTimersByTimeAsync(50);
      if (engine.calls.length > known) times.push(ms);
      known = engine.calls.length;
    }
    const steps = times.slice(1).map((time, n) => time - (times[n] ?? 0));
    expect(steps.at(-1)).toBe(1_000);
    expect(steps).toEqual(steps.toSorted((a, b) => a - b));
    expect(times.length).toBeGreaterThan(5);
    expect(states.filter((state) => state.startsWith('lost'))).toHaveLength(1);
  });

  it('does not wait for the backoff when the link comes up', async () => {
    const { seen } = listen('email');
    await soon();
    engine.cut();
    await vi.advanceTimersByTimeAsync(10_000);
    engine.push('email', { type: 'added' });
    engine.heal();
    await quiet();
    expect(seen).toEqual(['added 1']);
  });

  it('opens again and again, and knows its place once it can', async () => {
    engine.cut();
    const { seen } = listen('email');
    const ready = vi.fn<() => void>();
    void reader.ready('email')?.then(ready);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(ready).not.toHaveBeenCalled();
    engine.push('email', { type: 'added' });
    engine.heal();
    await soon();
    expect(ready).toHaveBeenCalledOnce();
    engine.push('email', { type: 'active' });
    await quiet();
    expect(seen).toEqual(['active 2']);
    expect(engine.connections).toBe(1);
  });

  it('stops trying when the last listener leaves', async () => {
    engine.cut();
    const { leave } = listen('email');
    await vi.advanceTimersByTimeAsync(5_000);
    leave();
    await quiet();
    const calls = engine.calls.length;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(engine.calls.length).toBe(calls);
    expect(states.at(-1)).toBe('closed');
  });

  it('says how many events of which queue were trimmed before they could be read', async () => {
    const { seen } = listen('email');
    listen('sms');
    engine.push('email', { type: 'added' });
    await soon();
    engine.push('email', { type: 'added' });
    await quiet();
    engine.cut();
    for (let n = 0; n < 5; n++) engine.push('email', { type: 'added' });
    engine.trim('email', 6);
    engine.heal();
    await soon();
    expect(seen.at(-1)).toBe('added 7');
    expect(states.slice(-3)).toEqual(['live', 'gap email 4', 'live']);
  });
});

describe('when the store starts over with its numbers', () => {
  it('is noticed after a broken connection, for every queue', async () => {
    for (let n = 0; n < 5; n++) engine.push('email', { type: 'added' });
    const email = listen('email');
    const watcher = listen('email', { jobId: 'x' });
    await soon();
    engine.push('email', { type: 'active', id: 'x' });
    await quiet();
    engine.cut();
    engine.flushAll();
    await vi.advanceTimersByTimeAsync(500);
    engine.push('email', { type: 'added', id: 'x' });
    engine.heal();
    await soon();
    engine.push('email', { type: 'completed', id: 'x' });
    await quiet();
    expect(email.seen).toEqual(['active 6', 'added 1', 'completed 2']);
    expect(watcher.seen).toEqual(email.seen);
    expect(states).toContain('gap email null');
  });

  it('is noticed without a broken connection, soon', async () => {
    engine.push('email', { type: 'added' });
    engine.push('sms', { type: 'added' });
    const email = listen('email');
    const sms = listen('sms');
    await soon();
    engine.flushAll();
    await vi.advanceTimersByTimeAsync(7_000);
    engine.push('email', { type: 'added' });
    engine.push('sms', { type: 'paused' });
    await quiet();
    expect(email.seen).toEqual(['added 1']);
    expect(sms.seen).toEqual(['paused 1']);
  });

  it('by a failover that lost some, nothing older than the last event told is told again', async () => {
    const { seen } = listen('email');
    await soon();
    for (let n = 0; n < 4; n++) {
      engine.push('email', { type: 'added' });
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(seen).toHaveLength(4);
    engine.cut();
    await vi.advanceTimersByTimeAsync(10);
    expect(engine.rollBack('email', 2)).toBe(2);
    engine.push('email', { type: 'dead' });
    engine.heal();
    await soon();
    expect(seen.slice(4)).toEqual(['dead 3']);
  });
});
