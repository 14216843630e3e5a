import { describe, expect, it } from 'vitest';
import { Redis } from 'ioredis';
import { Observable } from 'rxjs';
import { UnrecoverableError } from '#lib/errors.js';
import { type Job, Snooze } from '#lib/job/job.js';
import { bootQueue, brief, PATIENT, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { countsOf } from '../support/queue-states.js';

const redis = useRedis();

/** A beat comes each quarter of a lease. */
const LEASE_MS = 2_000;
const root = { lease: { duration: LEASE_MS } };
const WHY = 'the customer changed her mind';

const aborted = (job: Job) =>
  new Promise((resolve) => {
    if (job.signal.aborted) resolve(undefined);
    else job.signal.addEventListener('abort', resolve, { once: true });
  });

describe('a job that has not started', () => {
  it('is gone at once, waiting, delayed or with a priority, and is never run', async () => {
    const ran: string[] = [];
    const adding = await bootQueue(redis, { watch: false });
    const { queue } = adding;
    const options = [{}, { delay: '1h' }, { priority: 3 }];
    const ids = await Promise.all(options.map(async (one) => (await queue.add('x', 1, one)).id));
    for (const id of ids) expect(await queue.cancel(id, WHY)).toBe('cancelled');
    const { id: last } = await queue.add('x', 1);
    const { ended, said } = await bootQueue(redis, { handlers: { x: ({ id }) => ran.push(id) } });
    await ended(last);
    expect(ran).toEqual([last]);
    expect(said.values.filter(({ type }) => type === 'cancelled')).toEqual([]);
    for (const id of ids) {
      expect(await queue.get(id)).toBeNull();
      expect(await queue.cancel(id, WHY)).toBe('not-found');
    }
  });

  it('is reported by an event, with its name, attempts and the reason', async () => {
    const { queue, said } = await bootQueue(redis, {
      handlers: {
        again: () => {
          throw new Error('no');
        },
      },
    });
    const fresh = await queue.add('late', 1, { delay: '1h' });
    await queue.cancel(fresh.id);
    const retried = await queue.add('again', 1, { attempts: 3, backoff: '1h' });
    await said.first(({ type }) => type === 'retrying', PATIENT);
    expect(await queue.cancel(retried.id, WHY)).toBe('cancelled');
    const events = await said.take(2, ({ type }) => type === 'cancelled', PATIENT);
    expect(events.map(brief)).toEqual([
      { type: 'cancelled', jobId: fresh.id, name: 'late', attempt: 0, reason: 'no reason was given' },
      { type: 'cancelled', jobId: retried.id, name: 'again', attempt: 1, reason: WHY },
    ]);
  });

  it('is not found once it has completed or died, kept or not', async () => {
    const handlers: Handlers = {
      fine: () => 1,
      bad: () => {
        throw new UnrecoverableError();
      },
    };
    const { queue, ended } = await bootQueue(redis, { handlers });
    const jobs = [
      await queue.add('fine', 1),
      await queue.add('fine', 1, { retention: '1h' }),
      await queue.add('bad', 1),
    ];
    for (const { id } of jobs) await ended(id);
    for (const { id } of jobs) expect(await queue.cancel(id)).toBe('not-found');
    expect(await queue.cancel('never added')).toBe('not-found');
    expect(await queue.counts()).toMatchObject({ completed: 1, dead: 1 });
  });
});

describe('a job that runs', () => {
  const connections = {
    'whose worker beats from a thread': () => redis.url,
    'whose worker beats by a timer': () => () => new Redis(redis.url),
  };

  it.each(Object.keys(connections) as (keyof typeof connections)[])(
    '%s gets the signal within a heartbeat, from any process, and is never retried',
    async (how) => {
      const started = latch('the run');
      const asked = latch('asked twice');
      let reason: unknown;
      let heardAt = 0;
      const working = await bootQueue(redis, {
        root: { ...root, connection: connections[how]() },
        handlers: {
          async slow(job: Job) {
            started.open();
            await aborted(job);
            heardAt = performance.now();
            reason = job.signal.reason;
            // Until then it can be cancelled, however soon the worker hears of it.
            await asked.promise;
            throw job.signal.reason;
          },
        },
      });
      const other = await bootQueue(redis, { root: { role: 'producer' }, watch: false });
      const { id } = await other.queue.add('slow', 1, { attempts: 5, backoff: 0 });
      await started.wait(PATIENT);
      const askedAt = performance.now();
      expect(await other.queue.cancel(id, WHY)).toBe('signalled');
      expect(await other.queue.cancel(id, 'another reason')).toBe('signalled');
      asked.open();
      const end = await working.ended(id);
      expect(brief(end)).toEqual({ type: 'cancelled', jobId: id, name: 'slow', attempt: 1, reason: WHY });
      expect(reason).toMatchObject({
        code: 'GODWIT_JOB_ABORTED',
        reason: 'cancelled',
        jobId: id,
        attempt: 1,
      });
      expect((reason as Error).message).toContain(WHY);
      // A quarter of a lease, and what a busy machine may need.
      expect(heardAt - askedAt).toBeLessThan(LEASE_MS * 2);
      expect(await other.queue.get(id)).toBeNull();
      expect(await other.queue.cancel(id)).toBe('not-found');
      expect(await other.queue.counts()).toEqual(countsOf());
      expect(working.said.values.map(({ type }) => type)).toEqual(['added', 'active', 'cancelled']);
    },
  );

  it('ends as cancelled, whatever its handler throws then', async () => {
    const thrown: Record<string, unknown> = {
      error: new Error('something else'),
      unrecoverable: new UnrecoverableError(),
      snooze: new Snooze('1h'),
      text: 'a string',
      nothing: undefined,
    };
    const names = Object.keys(thrown);
    const started = names.map((name) => latch(name));
    const handlers = Object.fromEntries(
      names.map((name, i) => [
        name,
        async (job: Job) => {
          started[i]!.open();
          await aborted(job);
          throw thrown[name];
        },
      ]),
    );
    const { queue, ended } = await bootQueue(redis, { root, handlers });
    const jobs = await Promise.all(names.map((name) => queue.add(name, 1, { attempts: 3, backoff: 0 })));
    for (const one of started) await one.wait(PATIENT);
    for (const { id } of jobs) await queue.cancel(id);
    for (const { id } of jobs) expect(await ended(id)).toMatchObject({ type: 'cancelled', attempt: 1 });
    expect(await queue.counts()).toEqual(countsOf());
  });

  it('completes if its handler returns anyway', async () => {
    const started = latch('the run');
    const { queue, ended, said } = await bootQueue(redis, {
      root,
      handlers: {
        async stubborn(job: Job) {
          started.open();
          await aborted(job);
          return 'done';
        },
      },
    });
    const { id } = await queue.add('stubborn', 1, { retention: '1h' });
    await started.wait(PATIENT);
    expect(await queue.cancel(id)).toBe('signalled');
    expect((await ended(id)).type).toBe('completed');
    expect(await queue.get(id)).toMatchObject({ state: 'completed', result: 'done' });
    expect(said.values.filter(({ type }) => type === 'cancelled')).toEqual([]);
  });

  it('ends an Observable by unsubscribing from it', async () => {
    const subscribed = latch('the subscription');
    const unsubscribed = latch('its end');
    const { queue, ended } = await bootQueue(redis, {
      root,
      handlers: {
        stream: () =>
          new Observable(() => {
            subscribed.open();
            return () => unsubscribed.open();
          }),
      },
    });
    const { id } = await queue.add('stream', 1);
    await subscribed.wait(PATIENT);
    await queue.cancel(id);
    await unsubscribed.wait(PATIENT);
    expect((await ended(id)).type).toBe('cancelled');
  });

  it('ends an Observable whose teardown throws, and logs that', async () => {
    const subscribed = latch('the subscription');
    const stream = () =>
      new Observable(() => {
        subscribed.open();
        return () => {
          throw new Error('it leaks');
        };
      });
    const { queue, ended, logs } = await bootQueue(redis, { root, handlers: { stream } });
    const { id } = await queue.add('stream', 1);
    await subscribed.wait(PATIENT);
    await queue.cancel(id);
    expect((await ended(id)).type).toBe('cancelled');
    await logs.complaint(/the teardown of its Observable threw: .*it leaks/s);
  });

  it('ends when its worker is stopped before the cancellation reaches it', async () => {
    const started = latch('the run');
    const never = latch('nothing');
    const first = await bootQueue(redis, {
      // A beat comes each quarter of an hour, so the worker does not hear of it.
      root: { lease: { duration: '1h' }, shutdown: { timeout: 0, grace: 0 } },
      handlers: { deaf: () => (started.open(), never.promise) },
    });
    const { id } = await first.queue.add('deaf', 1);
    await started.wait(PATIENT);
    expect(await first.queue.cancel(id, WHY)).toBe('signalled');
    await first.runtime.stop();
    never.open();
    const end = await first.ended(id);
    expect(brief(end)).toMatchObject({ type: 'cancelled', attempt: 1, reason: WHY });
    const { queue } = await bootQueue(redis, { watch: false });
    expect(await queue.counts()).toEqual(countsOf());
  });
});

describe('a caller that waits for it', () => {
  it.each([true, false])('gets the reason, events on: %s', async (events) => {
    const started = latch('the run');
    const { queue } = await bootQueue(redis, {
      root,
      queue: { events },
      watch: events,
      handlers: {
        async slow(job: Job) {
          started.open();
          await aborted(job);
          throw job.signal.reason;
        },
      },
    });
    const expectCancelled = (waiting: Promise<unknown>) =>
      expect(waiting).rejects.toMatchObject({
        code: 'GODWIT_JOB_FAILED',
        reason: 'cancelled',
        message: expect.stringContaining(WHY) as string,
      });
    const delayed = expectCancelled(queue.addAndWait('slow', 1, { id: 'delayed', delay: '1h' }));
    const running = expectCancelled(queue.addAndWait('slow', 1, { id: 'running' }));
    await started.wait(PATIENT);
    await until(() => queue.get('delayed'), PATIENT);
    expect(await queue.cancel('delayed', WHY)).toBe('cancelled');
    expect(await queue.cancel('running', WHY)).toBe('signalled');
    await Promise.all([delayed, running]);
  });
});
