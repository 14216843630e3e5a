import { of, toArray, lastValueFrom } from 'rxjs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { EVENT_TYPES, type EventType, type RawEvent } from '#lib/contract/engine.js';
import { InvalidOptionError } from '#lib/errors.js';
import type { DeadReason, FailureRecord } from '#lib/job/outcome.js';
import { ofType } from '#lib/events/queue-events.js';
import { isEnd, toQueueEvent, type QueueEvent } from '#lib/events/queue-event.js';

const failure: FailureRecord = { name: 'TypeError', message: 'no', attempt: 2 };
const batch = { queue: 'email', at: 1_700_000_000_000 };

function raw(type: EventType, over: Partial<RawEvent> = {}): RawEvent {
  return {
    number: 41,
    type,
    id: 'j1',
    name: 'welcome',
    attempt: 2,
    durationUs: 1500,
    delayMs: 900,
    reason: 'retries-exhausted',
    error: failure,
    progress: '{"done":3}',
    ...over,
  };
}

describe('toQueueEvent', () => {
  const base = { eventId: '41', queue: 'email', at: new Date(batch.at) };
  const job = { ...base, jobId: 'j1', name: 'welcome' };
  const run = { ...job, attempt: 2 };
  const expected: Record<EventType, object> = {
    added: job,
    delayed: { ...job, delayMs: 900 },
    updated: job,
    active: run,
    progress: { ...run, progress: { done: 3 } },
    completed: { ...run, durationUs: 1500, result: { done: 3 } },
    retrying: { ...run, durationUs: 1500, delayMs: 900, error: failure },
    dead: { ...run, durationUs: 1500, reason: 'retries-exhausted', error: failure },
    stalled: run,
    released: run,
    removed: { ...job, reason: 'retries-exhausted' },
    cancelled: { ...run, reason: 'retries-exhausted' },
    paused: base,
    resumed: base,
    breakerOpened: { ...base, name: 'welcome', limit: 'retries-exhausted', openForMs: 900 },
    breakerClosed: { ...base, name: 'welcome', limit: 'retries-exhausted' },
    published: { ...base, name: 'welcome', payload: { done: 3 } },
  };

  it.each(EVENT_TYPES)('%s carries the fields that go with it, and no others', (type) => {
    const reason = type === 'completed' ? '' : 'retries-exhausted';
    expect(toQueueEvent(batch, raw(type, { reason }))).toStrictEqual({ type, ...expected[type] });
  });

  it('has no result unless the event contains one', () => {
    const completed = { type: 'completed', ...run, durationUs: 1500 };
    const none = raw('completed', { reason: '', progress: null });
    expect(toQueueEvent(batch, none)).toStrictEqual(completed);
    const tooLarge = raw('completed', { reason: 'too large', progress: null });
    expect(toQueueEvent(batch, tooLarge)).toStrictEqual({ ...completed, resultFault: 'too large' });
  });

  it('skips an unknown type', () => {
    expect(toQueueEvent(batch, raw('levitated' as EventType))).toBeNull();
  });

  it('keeps progress that is not JSON as text, and __proto__ as data', () => {
    expect(toQueueEvent(batch, raw('progress', { progress: '{half' }))).toMatchObject({ progress: '{half' });
    const event = toQueueEvent(batch, raw('progress', { progress: '{"__proto__":{"polluted":1}}' }));
    expect(Object.keys((event as { progress: object }).progress)).toEqual(['__proto__']);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it('narrows by type', () => {
    const event = toQueueEvent(batch, raw('dead')) as QueueEvent;
    expectTypeOf(event.jobId).toEqualTypeOf<string | undefined>();
    if (event.type === 'completed') expectTypeOf(event.durationUs).toEqualTypeOf<number>();
    if (event.type === 'dead') expectTypeOf(event.reason).toEqualTypeOf<DeadReason>();
    if (isEnd(event))
      expectTypeOf(event.type).toEqualTypeOf<'completed' | 'dead' | 'removed' | 'cancelled'>();
    // @ts-expect-error paused has no duration, so the union has none
    void event.durationUs;
  });
});

describe('ofType', () => {
  const events = EVENT_TYPES.map((type) => toQueueEvent(batch, raw(type)) as QueueEvent);

  it('lets the given types through and narrows to them', async () => {
    const stream = of(...events).pipe(ofType('dead', 'completed'), toArray());
    const seen = await lastValueFrom(stream);
    const [first] = seen;
    if (first) expectTypeOf(first.type).toEqualTypeOf<'dead' | 'completed'>();
    expect(seen.map((event) => event.type)).toEqual(['completed', 'dead']);
  });

  it('refuses a type that does not exist', () => {
    expect(() => ofType('complete' as EventType)).toThrow(InvalidOptionError);
    expect(() => ofType('complete' as EventType)).toThrow(/one of added, delayed/);
  });
});
