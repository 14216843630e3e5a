import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Subscription } from 'rxjs';
import { afterEach, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import type { EventType } from '#lib/contract/engine.js';
import {
  InvalidJobIdError,
  InvalidOptionError,
  NotRunningError,
  UnknownQueueError,
  WrongStateError,
} from '#lib/errors.js';
import { ofType, QueueEvents } from '#lib/events/queue-events.js';
import { FakeEventEngine } from './fake-event-engine.js';
import { quiet, soon } from './reader-bench.js';

let engine: FakeEventEngine;
let queues: string[];
let events: QueueEvents;

beforeEach(() => {
  vi.useFakeTimers();
  engine = new FakeEventEngine();
  queues = ['email', 'sms'];
  events = new QueueEvents(
    () => engine,
    () => queues,
    (queue) => {
      if (!queues.includes(queue)) throw new UnknownQueueError(queue, queues);
    },
  );
});

afterEach(async () => {
  await events.close();
  assert.equal(engine.connections, 0);
  vi.useRealTimers();
});

describe('of', () => {
  it('is hot, shared and counted: one connection, one read for all subscribers', async () => {
    const stream = events.of('email');
    expect(engine.calls).toEqual([]);
    const seen: string[] = [];
    const subscriptions = [1, 2, 3].map((n) =>
      stream.subscribe((event) => void seen.push(`${n} ${event.type}`)),
    );
    await events.ready('email');
    engine.push('email', { type: 'added' });
    await soon();
    expect(seen).toEqual(['1 added', '2 added', '3 added']);
    expect(engine.count('lastEvent')).toBe(1);
    for (const subscription of subscriptions) subscription.unsubscribe();
    await vi.advanceTimersByTimeAsync(2_000);
    expect([engine.count('openEvents'), engine.count('closeEvents')]).toEqual([1, 1]);
  });

  it('resumes after the id of an event', async () => {
    for (let n = 0; n < 11; n++) engine.push('email', { type: 'added', id: `job ${n + 1}` });
    const seen: string[] = [];
    events
      .of('email', { since: '9' })
      .subscribe((event) => void seen.push(`${event.eventId} ${event.jobId}`));
    await soon();
    expect(seen).toEqual(['10 job 10', '11 job 11']);
  });

  it.each(['', '-1', '1.5', '1-0', 'abc', '9'.repeat(16), ' 1', 3 as unknown as string])(
    'refuses %j as since',
    (since) => {
      expect(() => events.of('email', { since })).toThrow(InvalidOptionError);
      expect(() => events.forJob('email', 'a', { since })).toThrow(
        /forJob\(\)\.since must be the id of an event/,
      );
    },
  );

  it('refuses a queue that is not registered, at once', () => {
    expect(() => events.of('emails')).toThrow(UnknownQueueError);
    expect(() => events.ofType('emails', 'dead')).toThrow(UnknownQueueError);
    expect(() => events.forJob('emails', 'a')).toThrow(UnknownQueueError);
    expect(engine.calls).toEqual([]);
  });
});

describe('all', () => {
  it('is every queue registered at the time of subscribing', async () => {
    const seen: string[] = [];
    const stream = events.all();
    queues.push('push');
    stream.subscribe((event) => void seen.push(`${event.queue} ${event.eventId}`));
    await events.ready();
    for (const queue of queues) engine.push(queue, { type: 'paused' });
    await soon();
    expect(seen.toSorted()).toEqual(['email 1', 'push 1', 'sms 1']);
  });

  it('completes on close even when no queue is registered', async () => {
    queues.length = 0;
    const complete = vi.fn<() => void>();
    events.all().subscribe({ complete });
    await events.close();
    expect(complete).toHaveBeenCalledOnce();
  });
});

describe('ofType', () => {
  it('narrows to the types, as method and as operator', async () => {
    const seen: string[] = [];
    events.ofType('email', 'dead', 'retrying').subscribe((event) => {
      expectTypeOf(event.durationUs).toEqualTypeOf<number>();
      seen.push(event.type);
    });
    events
      .all()
      .pipe(ofType('completed'))
      .subscribe((event) => {
        expectTypeOf(event.type).toEqualTypeOf<'completed'>();
        seen.push(event.type);
      });
    await events.ready();
    engine.push('email', { type: 'added' }, { type: 'retrying' }, { type: 'completed' }, { type: 'dead' });
    await soon();
    expect(seen).toEqual(['retrying', 'completed', 'dead']);
    expect(() => events.ofType('email', 'died' as EventType)).toThrow(InvalidOptionError);
  });

  it('delivers the remaining events to a subscriber that joins during a delivery, whatever types others get', async () => {
    const seen: string[] = [];
    const note = (event: { type: string; eventId: string }) =>
      void seen.push(`${event.type} ${event.eventId}`);
    const first = events.ofType('email', 'added').subscribe((event) => {
      note(event);
      if (event.eventId === '1') events.ofType('email', 'completed').subscribe(note);
      if (event.eventId === '3') events.of('email').subscribe(note);
    });
    await events.ready();
    const types = ['added', 'completed', 'added', 'completed', 'dead'] as const;
    engine.push('email', ...types.map((type) => ({ type })));
    await soon();
    expect(seen).toEqual(['added 1', 'completed 2', 'added 3', 'completed 4', 'completed 4', 'dead 5']);
    first.unsubscribe();
  });
});

describe('forJob', () => {
  it.each(['completed', 'dead', 'removed'] as const)('completes after %s of that job', async (type) => {
    const seen: string[] = [];
    events.forJob('email', 'a').subscribe({
      next: (event) => void seen.push(event.type),
      complete: () => void seen.push('complete'),
    });
    await events.ready('email');
    engine.push('email', { type: 'added', id: 'a' }, { type, id: 'b' }, { type: 'active', id: 'a' });
    engine.push('email', { type, id: 'a' }, { type: 'added', id: 'a' });
    await soon();
    expect(seen).toEqual(['added', 'active', type, 'complete']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(engine.connections).toBe(0);
  });

  it('can look back', async () => {
    engine.push('email', { type: 'added', id: 'a' }, { type: 'added', id: 'b' }, { type: 'dead', id: 'a' });
    const seen: string[] = [];
    events.forJob('email', 'a', { since: '0' }).subscribe((event) => void seen.push(event.type));
    await soon();
    expect(seen).toEqual(['added', 'dead']);
  });

  it.each(['', undefined, 7])('refuses %j as an id', (id) => {
    expect(() => events.forJob('email', id as string)).toThrow(InvalidJobIdError);
  });
});

describe('ready', () => {
  it('waits until the position in the stream is known', async () => {
    let answer!: () => void;
    engine.held.set('lastEvent', new Promise<void>((resolve) => (answer = resolve)));
    const seen: string[] = [];
    events.of('email').subscribe((event) => void seen.push(event.eventId));
    const ready = vi.fn<() => void>();
    void events.ready('email').then(ready);
    await soon();
    expect(ready).not.toHaveBeenCalled();
    answer();
    await quiet();
    expect(ready).toHaveBeenCalledOnce();
    engine.push('email', { type: 'added' });
    await soon();
    expect(seen).toEqual(['1']);
  });

  it('rejects when there is no subscriber, or no longer one', async () => {
    await expect(events.ready('email')).rejects.toThrow(WrongStateError);
    await expect(events.ready('emails')).rejects.toThrow(UnknownQueueError);
    engine.cut();
    const subscription = events.of('email').subscribe();
    const ready = events.ready('email');
    subscription.unsubscribe();
    await expect(ready).rejects.toThrow(/not subscribed; subscribe to it before ready/);
    await expect(events.ready()).resolves.toBeUndefined();
  });

  it('rejects when the application stops', async () => {
    engine.cut();
    events.of('email').subscribe();
    const ready = events.ready('email');
    const closed = events.close();
    await expect(ready).rejects.toThrow(NotRunningError);
    await closed;
  });
});

describe('status$', () => {
  it('emits the current status first, opens no connection, and ends with closed', async () => {
    const early: string[] = [];
    events.status$.subscribe({
      next: ({ state }) => void early.push(state),
      complete: () => void early.push('complete'),
    });
    expect(engine.calls).toEqual([]);
    events.of('email').subscribe();
    await soon();
    const late: string[] = [];
    events.status$.subscribe(({ state }) => void late.push(state));
    expect(late).toEqual(['live']);
    engine.cut();
    await vi.advanceTimersByTimeAsync(5_000);
    events.status$.subscribe((status) => {
      late.push(status.state === 'lost' ? status.error.message : status.state);
    });
    expect(late).toEqual(['live', 'lost', 'socket closed']);
    await events.close();
    expect(early).toEqual(['closed', 'connecting', 'live', 'lost', 'closed', 'complete']);
    const after: string[] = [];
    events.status$.subscribe({
      next: ({ state }) => void after.push(state),
      complete: () => void after.push('complete'),
    });
    expect(after).toEqual(['closed', 'complete']);
  });
});

/** One stream of each kind. */
function kinds(name: string): string[] {
  return [`of ${name}`, `since ${name}`, `all ${name}`, `job ${name}`];
}

describe('close', () => {
  it('completes every stream at once, in any state, and later ones too', async () => {
    const ends: string[] = [];
    const subscribe = (name: string): Subscription[] => [
      events.of('email').subscribe({ complete: () => void ends.push(`of ${name}`) }),
      events.of('email', { since: '0' }).subscribe({ complete: () => void ends.push(`since ${name}`) }),
      events.all().subscribe({ complete: () => void ends.push(`all ${name}`) }),
      events.forJob('email', 'a').subscribe({ complete: () => void ends.push(`job ${name}`) }),
    ];
    subscribe('before');
    engine.cut();
    const closed = events.close();
    expect(ends).toEqual(kinds('before'));
    await closed;
    await events.close();
    expect(subscribe('after').every((subscription) => subscription.closed)).toBe(true);
    expect(ends.slice(4)).toEqual(kinds('after'));
    expect(engine.count('closeEvents')).toBeLessThanOrEqual(1);
  });
});

describe('a process with subscribers that throw', () => {
  it('stays alive, and the other subscribers get everything', async () => {
    vi.useRealTimers();
    const script = fileURLToPath(new URL('throwing-subscribers.mjs', import.meta.url));
    const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    const told = out.split('\n').filter((line) => line.startsWith('told'));
    expect({ code, told }).toEqual({
      code: 0,
      told: ['told added 1', 'told active 2', 'told completed 3'],
    });
    const log = out + err;
    for (const who of ['next', 'async', 'piped', 'operator', 'status', 'complete']) {
      expect(log).toContain(`thrown by ${who}`);
    }
    // Three events: the subscribers that stay threw for each of them.
    expect(log.match(/stays subscribed: thrown by next/g)).toHaveLength(3);
  });
});
