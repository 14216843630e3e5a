import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { QueueModule } from '#lib/index.js';
import type { QueueDashboardOptions } from '#lib/subpaths/dashboard.js';
import type { LiveBatch } from '#lib/subpaths/dashboard/live.js';
import { startCut } from '../support/cut.js';
import { bootDashboard } from '../support/dashboard.js';
import { PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

/** The batches in the text of a stream. */
const batchesOf = (text: string): LiveBatch[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!) as LiveBatch);

describe.each(['express', 'fastify'] as const)('live events on %s', (platform) => {
  const boot = (dashboard?: QueueDashboardOptions, more: Partial<Parameters<typeof bootDashboard>[1]> = {}) =>
    bootDashboard(redis, { platform, ...(dashboard && { dashboard }), ...more });

  it('streams events, continues where a reader stopped, and ends with the application', async () => {
    const { app, queue, ask, follow } = await boot();
    await queue.add('a', 1, { id: 'one' });
    const first = await follow('work:0');
    expect(first.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    const id = /^id: (work:\d+)$/m.exec(await first.until('"one"'))![1]!;
    first.close();
    await queue.add('a', 1, { id: 'two' });
    const second = await follow(id);
    expect(await second.until('"two"')).not.toContain('"one"');
    // The last one has the form of a number, but is too large to be exact.
    for (const last of ['nonsense', 'work:x', 'work:9999999999999999']) {
      const headers = { 'last-event-id': last };
      expect((await ask('GET', 'api/v1/events', { headers })).status).toBe(400);
    }
    expect((await ask('GET', 'api/v1/events?queue=nobody')).status).toBe(404);
    await Promise.all([second.ended, app.close()]);
  });

  it('shows the name, payload and limit of events without a job', async () => {
    const breaker = { failures: 1, window: '1m', openFor: '30s' } as const;
    const { queueOf, follow, app } = await boot(
      { access: 'public' },
      {
        root: { connection: redis.url, prefix: redis.prefix, limits: { api: { breaker } } },
        imports: [QueueModule.registerQueue({ name: 'calls', uses: ['api'] })],
        providers: [
          processorOf('calls', {
            a: () => {
              throw new Error('no');
            },
          }),
        ],
      },
    );
    const calls = queueOf('calls');
    await calls.publish('imported', { rows: 3, secret: 'x' });
    await calls.add('a', 1, { attempts: 1 });
    const stream = await follow('calls:0');
    const events = batchesOf(await stream.until('"breakerOpened"')).flatMap((batch) => batch.events);
    expect(events.filter(({ jobId }) => jobId === undefined)).toMatchObject([
      { type: 'published', name: 'imported', note: expect.stringMatching(/^\{"rows":3,"secret":"\[hidden/) },
      { type: 'breakerOpened', note: 'api for 30\u00a0s' },
    ]);
    await app.close();
  });

  it('shows only the jobs of one name, and counts no others', async () => {
    const { queue, ask, follow } = await boot();
    const noise = Array.from({ length: 300 }, () => ({ name: 'noise', data: 1 }));
    await queue.addBulk([...noise, { name: 'mail', data: 1, options: { id: 'one' } }, ...noise]);
    await queue.add('mail', 1, { id: 'two' });
    const stream = await follow('work:0', '?name=mail');
    const batches = batchesOf(await stream.until('"two"'));
    expect(batches.flatMap((batch) => batch.events.map(({ jobId }) => jobId))).toEqual(['one', 'two']);
    expect(batches.every(({ skipped }) => skipped === 0)).toBe(true);
    stream.close();
    expect((await ask('GET', 'api/v1/events?name=%00')).status).toBe(400);
  });

  it('tells its readers that Redis is away, and when it is back', async () => {
    const cut = await startCut(redis.url);
    const { follow, queue } = await boot(undefined, { root: { connection: cut.url } });
    await queue.add('a', 1, { id: 'one' });
    const live = await follow('work:0');
    await live.until('"one"');
    cut.close();
    await live.until('event: status\ndata: lost\n');
    await cut.heal();
    expect(await live.until('data: live\n')).toMatch(/data: lost\n[^]*event: status\ndata: live\n/);
  });

  it('limits how many clients follow the events at once', async () => {
    const { ask, follow } = await boot({ access: 'public', maxStreams: 1 });
    const first = await follow('work:0');
    await first.until('retry: 2000');
    const { status, body } = await ask('GET', 'api/v1/events');
    expect([status, body.error.code]).toEqual([503, 'TOO_MANY_STREAMS']);
    first.close();
    await until(async () => {
      const next = await follow('work:0');
      next.close();
      return next.headers['content-type'] === 'text/event-stream; charset=utf-8';
    }, PATIENT);
  });

  it('keeps no place for a client that leaves while its rights are checked, nor for a HEAD', async () => {
    const asked = latch('authorize');
    const gate = latch('its answer');
    let isSlow = true;
    const { url, ask, follow } = await boot({
      maxStreams: 1,
      authorize: async () => {
        if (isSlow) {
          asked.open();
          await gate.promise;
        }
        return 'admin' as const;
      },
    });
    const leaving = connect(Number(new URL(url).port), '127.0.0.1');
    leaving.write(`GET ${new URL(url).pathname}api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n`);
    await asked.wait(PATIENT);
    leaving.destroy();
    await once(leaving, 'close');
    isSlow = false;
    const head = await ask('HEAD', 'api/v1/events');
    expect([head.status, head.headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
    gate.open();
    const next = await follow('work:0');
    await next.until('retry: 2000');
    next.close();
  });

  it('shows some events of a busy queue, all of another, and counts the rest', async () => {
    const { queue, queueOf, follow } = await boot(undefined, { queues: ['calm'] });
    await queue.add('first', 0, { id: 'first' });
    const live = await follow('work:0');
    await live.until('"first"');
    const total = 20_000;
    for (let from = 0; from < total; from += 1_000)
      await queue.addBulk(Array.from({ length: 1_000 }, (_, n) => ({ name: 'burst', data: from + n })));
    for (let n = 0; n < 5; n++) await queueOf('calm').add('calm', n, { id: `calm-${n}` });
    await live.until('"calm-4"');
    // It goes on with events that come after the burst.
    let isOver = false;
    const over = live.until('"last"').finally(() => (isOver = true));
    while (!isOver) await queue.add('last', 0);
    const text = await over;
    const batches = batchesOf(text);
    const events = batches.flatMap((batch) => batch.events);
    const skipped = batches.reduce((sum, batch) => sum + batch.skipped, 0);
    expect(events.filter((event) => event.queue === 'calm')).toHaveLength(5);
    const shown = events.filter((event) => event.queue === 'work');
    expect(new Set(shown.map(({ jobId }) => jobId)).size).toBe(shown.length);
    // Each event of the queue has a number, from 1.
    const [last] = [...text.matchAll(/^id: .*work:(\d+)/gm)].map(([, number]) => Number(number)).toReversed();
    expect(shown.length + skipped).toBe(last);
    expect(skipped).toBeGreaterThan(total / 2);
    expect(Math.max(...batches.map((batch) => batch.events.length))).toBeLessThanOrEqual(200);
  });

  it('shows durations with their units', async () => {
    const { queue, follow } = await boot();
    const live = await follow('work:0');
    await queue.add('a', 1, { id: 'later', delay: '1m' });
    const batches = batchesOf(await live.until('"later"'));
    expect(batches.flatMap(({ events }) => events.map(({ note }) => note))).toContain('for 1\u00a0min');
  });

  it('sends events of one type, however many others there are', async () => {
    const { queue, ask, follow } = await boot();
    const live = await follow('work:0', '?type=removed');
    for (let n = 0; n < 5; n++) {
      const added = await queue.addBulk(Array.from({ length: 1_000 }, (_, i) => ({ name: 'a', data: i })));
      await queue.remove(added[0]!.id);
    }
    await queue.add('a', 0, { id: 'end' });
    await queue.remove('end');
    const batches = batchesOf(await live.until('"end"'));
    expect(batches.flatMap(({ events }) => events.map(({ type }) => type))).toEqual(Array(6).fill('removed'));
    expect(batches.every(({ skipped }) => skipped === 0)).toBe(true);
    const { status, body } = await ask('GET', 'api/v1/events?type=deleted');
    expect([status, body.error.code]).toEqual([400, 'BAD_EVENT_TYPE']);
  });
});
