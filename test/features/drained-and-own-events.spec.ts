import { describe, expect, it, vi } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import { bootQueue, brief, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect, latch, until } from '../support/wait.js';

const redis = useRedis();

describe('a drained queue', () => {
  /** An application that watches. The last job of `work` ends when the gate opens. */
  async function boot(gate = Promise.resolve()) {
    const app = await bootQueue(redis, { handlers: { '*': () => undefined, gated: () => gate } });
    const events = app.get(QueueEvents);
    const drained = collect(events.drained('work'));
    await events.ready('work');
    return { ...app, queue: app.queue, said: app.said, drained };
  }
  const done = ({ said }: Pick<QueueApp, 'said'>, count: number) =>
    said.take(count, ({ type }) => type === 'completed', PATIENT);

  it('is reported once when the last job has ended, and again after more jobs', async () => {
    const app = await boot();
    await app.queue.addBulk(Array.from({ length: 200 }, () => ({ name: 'one', data: null })));
    const first = await app.drained.first(undefined, PATIENT);
    expect(first).toEqual({ type: 'drained', queue: 'work', at: expect.any(Date) });
    await done(app, 200);
    await app.queue.add('one', null);
    await done(app, 201);
    await app.drained.take(2, undefined, PATIENT);
    expect(app.drained.values).toHaveLength(2);
  });

  it('is not reported while a job waits, runs or is due', async () => {
    const gate = latch('the last job may end');
    const app = await boot(gate.promise);
    await app.queue.add('gated', null, { id: 'last' });
    await app.queue.add('one', null);
    await app.queue.add('one', null, { delay: '1h' });
    await done(app, 1);
    // The check after this end finds a job that runs. Only the end of that job drains the queue.
    const ended = app.said.first(({ type, jobId }) => type === 'completed' && jobId === 'last', PATIENT);
    expect(app.drained.values).toEqual([]);
    gate.open();
    const end = await ended;
    const event = await app.drained.first(undefined, PATIENT);
    expect(event.at.getTime()).toBeGreaterThanOrEqual(end.at.getTime());
    expect(await app.queue.counts()).toMatchObject({ delayed: 1, active: 0 });
  });

  it('is reported when the last job that runs is delayed until a later attempt', async () => {
    const gate = latch('the last job may fail');
    const app = await boot(gate.promise.then(() => Promise.reject(new Error('no luck'))));
    const looks = vi.spyOn(app.get<QueueEngine>(QUEUE_ENGINE).admin, 'counts');
    await app.queue.add('gated', null, { backoff: '1h' });
    await app.queue.add('one', null);
    await until(() => looks.mock.settledResults[0]?.type === 'fulfilled', PATIENT);
    gate.open();
    const { at } = await app.said.first(({ type }) => type === 'retrying', PATIENT);
    const event = await app.drained.first(undefined, PATIENT);
    expect(event.at.getTime()).toBeGreaterThanOrEqual(at.getTime());
  });

  it('is refused for a queue that is not registered', async () => {
    const { get } = await bootQueue(redis, { watch: false });
    expect(() => get(QueueEvents).drained('nope')).toThrow(
      expect.objectContaining({ code: 'GODWIT_UNKNOWN_QUEUE' }),
    );
  });
});

describe('events of the application', () => {
  it('reach every process in order, as they were given', async () => {
    const app = await bootQueue(redis, {});
    await app.queue.publish('imported', { rows: 3, at: new Date(0) });
    await app.queue.add('one', null, { id: 'a', delay: '1h' });
    await app.queue.publish('over');
    const said = await app.said.take(3, ({ type }) => type !== 'active', PATIENT);
    expect(said.map((event: QueueEvent) => brief(event))).toEqual([
      { type: 'published', name: 'imported', payload: { rows: 3, at: '1970-01-01T00:00:00.000Z' } },
      { type: 'delayed', jobId: 'a', name: 'one', delayMs: 3_600_000 },
      { type: 'published', name: 'over', payload: null },
    ]);
  });

  it('are refused with an invalid name, with a payload that is not JSON or too large, and if no events are kept', async () => {
    const { queue, queueOf } = await bootQueue(redis, {
      queues: [{ name: 'mute', events: false }],
      watch: false,
    });
    for (const name of ['', 'a\nb', 7 as never, 'x'.repeat(256)])
      await expect(queue.publish(name)).rejects.toMatchObject({ code: 'GODWIT_INVALID_OPTION' });
    await expect(queue.publish('own', { f: () => 1 })).rejects.toMatchObject({
      code: 'GODWIT_INVALID_PAYLOAD',
    });
    await expect(queue.publish('own', 'x'.repeat(999))).rejects.toMatchObject({
      code: 'GODWIT_PAYLOAD_TOO_LARGE',
      message:
        'the payload of an event takes 1001 bytes, more than 1000; store it elsewhere and put its address into the event',
    });
    await queue.publish('own', 'x'.repeat(998));
    await expect(queueOf('mute').publish('own')).rejects.toThrow(
      `event "own" in queue 'mute' is not stored; the option events is false or its max is 0, so nobody could read it`,
    );
  });
});
