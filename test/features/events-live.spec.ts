import { describe, expect, it } from 'vitest';
import { processKeys } from '#lib/engine/keys.js';
import type { EventsStatus } from '#lib/events/event-status.js';
import { ofType } from '#lib/events/queue-events.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import type { Job } from '#lib/job/job.js';
import {
  bootQueue,
  brief,
  keyOf,
  PATIENT,
  type Handlers,
  type QueueApp,
  describeOnRedis,
  itOnRedis,
} from '../support/queue-app.js';
import { useRedis, type TestRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { collect, latch, until } from '../support/wait.js';

const openReaders = async (redis: TestRedis) =>
  (await redis.clients()).filter(({ name }) => name?.endsWith(':events')).length;

describe('events', () => {
  const redis = useRedis();

  itOnRedis('tell every kind of move once, in order, with what belongs to it', async () => {
    const gate = latch('the gate');
    const handlers: Handlers = {
      job: async (job: Job) => {
        if (job.attempt === 1) throw new TypeError('no luck');
        await job.progress({ percent: 50 });
      },
      slow: () => gate.promise,
    };
    const { queue, queueOf, runtime, said, ended } = await bootQueue(redis, {
      handlers,
      queues: [{ name: 'other' }],
      root: { shutdown: { timeout: 0, grace: 0 }, lease: { duration: '2s' } },
      queue: { defaults: { attempts: 2, backoff: 0 }, unknownJob: 'dead' },
    });
    await queue.pause();
    await queueOf('other').add('not of this queue', 1);
    await queue.add('job', 1, { id: 'later', delay: '1h' });
    await queue.remove('later');
    await queue.add('job', 1, { id: 'a' });
    await queue.resume();
    await ended('a');
    // A worker that died while it ran a job.
    await queue.pause();
    await queue.add('job', 1, { id: 'b' });
    await redis.admin.lrem(keyOf(redis, 'wait'), 1, 'b');
    await redis.admin.sadd(keyOf(redis, 'active:ghost'), 'b');
    await redis.admin.zadd(keyOf(redis, 'workers'), 1, 'ghost');
    await queue.resume();
    await ended('b');
    await queue.add('nobody', 1, { id: 'c' });
    await ended('c');
    await queue.add('slow', 1, { id: 'd' });
    await said.first((event) => event.type === 'active' && event.jobId === 'd', PATIENT);
    await runtime.stop();
    const released = await said.first((event) => event.type === 'released', PATIENT);
    gate.open();

    const of = (jobId: string, name = 'job') => ({ jobId, name });
    const error = { name: 'TypeError', message: 'no luck', attempt: 1 };
    const tries = (jobId: string) => [
      { type: 'active', ...of(jobId), attempt: 1 },
      { type: 'retrying', ...of(jobId), attempt: 1, delayMs: 0, error },
      { type: 'active', ...of(jobId), attempt: 2 },
      { type: 'progress', ...of(jobId), attempt: 2, progress: { percent: 50 } },
      { type: 'completed', ...of(jobId), attempt: 2 },
    ];
    const unrun = { name: 'UnrunnableJob', message: expect.stringContaining('nobody'), attempt: 0 };
    const expected = [
      { type: 'paused' },
      { type: 'delayed', ...of('later'), delayMs: 3_600_000 },
      { type: 'removed', ...of('later'), reason: 'asked' },
      { type: 'added', ...of('a') },
      { type: 'resumed' },
      ...tries('a'),
      { type: 'paused' },
      { type: 'added', ...of('b') },
      { type: 'resumed' },
      { type: 'stalled', ...of('b'), attempt: 1 },
      ...tries('b'),
      { type: 'added', ...of('c', 'nobody') },
      { type: 'active', ...of('c', 'nobody'), attempt: 1 },
      { type: 'dead', ...of('c', 'nobody'), attempt: 0, reason: 'no-handler', error: unrun },
      { type: 'added', ...of('d', 'slow') },
      { type: 'active', ...of('d', 'slow'), attempt: 1 },
      { type: 'released', ...of('d', 'slow'), attempt: 1 },
    ];
    expect(said.values.map(brief)).toEqual(expected);

    // Events are numbered one by one, their times never go back, and each says how long the run took.
    expect(said.values.map((event) => event.eventId)).toEqual(expected.map((_, i) => String(i + 1)));
    for (const [i, event] of said.values.entries()) {
      expect(event.queue).toBe('work');
      expect(event.at.getTime()).toBeGreaterThanOrEqual(said.values[i - 1]?.at.getTime() ?? 0);
    }
    const durations = said.values.flatMap((event) => ('durationUs' in event ? [event.durationUs] : []));
    expect(durations).toHaveLength(5);
    expect(durations.every((us) => Number.isInteger(us) && us >= 0)).toBe(true);
    expect(released.at.getTime()).toBeGreaterThan(0);
    // This stop waits 100 ms for its last calls. On a busy machine the record of the process then stays until its lease ends.
    const { processes, processInfo } = processKeys(redis.prefix);
    await redis.admin.unlink(processes, processInfo);
  });

  it('are replayed after the last event of a reader, then continue live', async () => {
    const { queue, events, said } = await bootQueue(redis, { handlers: { job: () => 1 }, concurrency: 1 });
    const add = () => queue.addBulk(Array.from({ length: 20 }, (_, data) => ({ name: 'job', data })));
    await add();
    await said.take(20, (event) => event.type === 'completed', PATIENT);
    const seen = said.values[17]!;

    const resumed = collect(events.of('work', { since: seen.eventId }));
    const fromStart = collect(events.of('work', { since: '0' }));
    const onlyDead = collect(events.of('work', { since: '0' }).pipe(ofType('dead')));
    await add();
    await said.take(40, (event) => event.type === 'completed', PATIENT);
    await resumed.take(said.values.length - 18, undefined, PATIENT);
    await fromStart.take(said.values.length, undefined, PATIENT);
    expect(resumed.values).toEqual(said.values.slice(18));
    expect(fromStart.values).toEqual(said.values);
    expect(onlyDead.values).toEqual([]);
    expect(new Set(said.values.map((event) => event.eventId)).size).toBe(120);
  });

  itOnRedis('open one connection with the first subscriber, and close it with the last', async () => {
    const { queue, events } = await bootQueue(redis, { watch: false, queues: [{ name: 'other' }] });
    expect(await openReaders(redis)).toBe(0);
    const [one, two, all] = [events.of('work'), events.of('other'), events.all()].map((source) =>
      collect(source),
    ) as [ReturnType<typeof collect<QueueEvent>>, ReturnType<typeof collect>, ReturnType<typeof collect>];
    const watcher = collect(events.forJob('work', 'a'));
    await events.ready();
    await queue.add('job', 1, { id: 'a' });
    for (const reader of [one, all, watcher]) await reader.first(undefined, PATIENT);
    expect(await openReaders(redis)).toBe(1);
    for (const reader of [one, two, all]) reader.stop();
    await queue.remove('a');
    expect(await watcher.first((event) => event.type === 'removed', PATIENT)).toMatchObject({ jobId: 'a' });
    expect(watcher.ended).toBe(true);
    await until(async () => (await openReaders(redis)) === 0, PATIENT);

    const again = collect(events.of('work'));
    await events.ready('work');
    await queue.add('job', 1);
    await again.first((event) => event.type === 'added', PATIENT);
    expect(await openReaders(redis)).toBe(1);
  });

  it('continue if a subscriber throws', async () => {
    const { queue, events, said, logs } = await bootQueue(redis, { handlers: { job: () => 1 } });
    const heard: string[] = [];
    events.of('work').subscribe((event) => {
      heard.push(event.type);
      throw new Error('this subscriber is broken');
    });
    // oxlint-disable-next-line typescript/no-misused-promises -- what people write
    events.of('work').subscribe(async () => {
      await Promise.resolve();
      throw new Error('and this one rejects');
    });
    await queue.add('job', 1);
    await said.take(3, undefined, PATIENT);
    expect(heard).toEqual(['added', 'active', 'completed']);
    await logs.complaint(/this subscriber is broken/);
    await logs.complaint(/and this one rejects/);
  });

  it('of one job reach its watcher, and end with the job', async () => {
    const handlers: Handlers = {
      job: async (job: Job) => {
        await job.progress(job.attempt);
        if (job.attempt === 1) throw new Error('once');
      },
    };
    const { queue, events } = await bootQueue(redis, { handlers, watch: false });
    const watched = collect(events.forJob('work', 'mine'));
    await events.ready('work');
    await queue.addBulk(
      ['mine', 'other'].map((id) => ({ name: 'job', data: 1, options: { id, backoff: 0 } })),
    );
    await until(() => watched.ended, PATIENT);
    expect(watched.error).toBeUndefined();
    expect(watched.values.map((event) => [event.jobId, event.type])).toEqual(
      ['added', 'active', 'progress', 'retrying', 'active', 'progress', 'completed'].map((type) => [
        'mine',
        type,
      ]),
    );
  });

  it('contain results if asked, up to a size that keeps all of them within the limit', async () => {
    const handlers: Handlers = {
      made: () => ({ url: 'https://x.test/a\nb', at: new Date(0) }),
      none: () => {},
      zero: () => null,
      large: () => 'x'.repeat(500),
      odd: () => new Map(),
    };
    const { queue, said, ended } = await bootQueue(redis, {
      handlers,
      root: { events: { results: true } },
      queue: { events: { max: 100, maxBytes: 20_000 } },
    });
    const jobs = Object.keys(handlers).map((name) => ({ name, data: 1, options: { id: name } }));
    await queue.addBulk(jobs);
    for (const { name } of jobs) await ended(name);
    await queue.add('large', 1, { id: 'kept', retention: '1h' });
    await ended('kept');
    const results = said.values.flatMap((event) => {
      if (event.type !== 'completed') return [];
      const { jobId, result, resultFault } = event;
      return [
        [jobId, { ...('result' in event && { result }), ...('resultFault' in event && { resultFault }) }],
      ];
    });
    const tooLarge = { resultFault: 'its JSON has 502 bytes, more than the 200 of an event' };
    expect(Object.fromEntries(results)).toEqual({
      made: { result: { url: 'https://x.test/a\nb', at: '1970-01-01T00:00:00.000Z' } },
      none: {},
      zero: { result: null },
      large: tooLarge,
      odd: { resultFault: expect.stringContaining('Map') },
      kept: tooLarge,
    });
    expect((await queue.get('kept'))?.result).toBe('x'.repeat(500));
  });

  it('are not written if they are switched off', async () => {
    const { queue, events } = await bootQueue(redis, {
      handlers: { job: () => 1 },
      queue: { events: false },
      watch: false,
    });
    const heard = collect(events.all());
    await events.ready();
    expect(await queue.addAndWait('job', 1)).toBe(1);
    expect(heard.values).toEqual([]);
    expect(await redis.admin.exists(keyOf(redis, 'events'))).toBe(0);
  });
});

describeOnRedis('events while Redis restarts', () => {
  const server = useServer({ args: KEEPING });
  const redis = useRedis({ server });

  it('continue after the last event, and status$ shows their status', async () => {
    const app: QueueApp = await bootQueue(redis, { handlers: { job: () => 1 } });
    const { queue, events, said } = app;
    const states: EventsStatus['state'][] = [];
    events.status$.subscribe((status) => void states.push(status.state));
    const status = collect(events.status$);
    const { id: first } = await queue.add('job', 1);
    await app.ended(first);
    await status.first(({ state }) => state === 'live', PATIENT);

    await server.restart();
    await status.first(({ state }) => state === 'lost', PATIENT);
    const { id: second } = await until(() => queue.add('job', 2, { id: 'after' }), PATIENT);
    await app.ended(second);
    await until(() => states.at(-1) === 'live', PATIENT);
    expect(said.ended).toBe(false);
    expect(said.values.map((event) => [event.jobId, event.type])).toEqual(
      [first, second].flatMap((id) => ['added', 'active', 'completed'].map((type) => [id, type])),
    );
    expect(states.filter((state) => state === 'gap')).toEqual([]);

    await app.close();
    expect(status.ended).toBe(true);
    expect(states.at(-1)).toBe('closed');
  });
});
