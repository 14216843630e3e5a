import { createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { BootstrapError, GodwitError, RedisUnavailableError, UnsupportedRedisError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import type { QueueOptions } from '#lib/options/module-options.js';
import { startCut } from '../support/cut.js';
import { atEnd } from '../support/cleanup.js';
import { keyOf, bodyCount, bootQueue, Logs, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';
import { flowCases } from './bad-flow.cases.js';
import { cases } from './bad-input.cases.js';
import { countsOf } from '../support/queue-states.js';

describe('a wrong call', () => {
  const redis = useRedis();

  it('rejects with a typed error that names the place, and changes nothing in Redis', async () => {
    const app = await bootQueue(redis, { watch: false, queue: { maxPayloadBytes: 1000 } });
    for (const [what, code, message, call] of [...cases, ...flowCases]) {
      const error = await call(app).then(
        (value) => expect.fail(`${what} was taken: ${JSON.stringify(value)}`),
        (thrown: GodwitError) => thrown,
      );
      expect(error, what).toBeInstanceOf(GodwitError);
      expect(error.code, what).toBe(code);
      expect(error.name, what).toBe(error.constructor.name);
      expect(tells(error.message, message), `${what}: ${error.message}`).toBe(true);
      // oxlint-disable-next-line no-control-regex
      expect(error.message, what).not.toMatch(/[\u0000-\u001f\u007f-\u009f\ud800]/u);
    }
    // `addAndWait` may have read the number of the last event, but nothing was written.
    expect(await redis.keys()).toEqual([keyOf(redis, 'meta')]);
    expect(await app.queue.counts()).toEqual(countsOf());
  });

  it('keeps __proto__ in data as data, and applies it to nothing', async () => {
    const text =
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"a":{"__proto__":3}}';
    const seen: { keys: string[]; prototype: unknown; json: string }[] = [];
    const { queue, ended } = await bootQueue(redis, {
      handlers: {
        job: ({ data }: Job<object>) => {
          seen.push({
            keys: Object.keys(data),
            prototype: Object.getPrototypeOf(data),
            json: JSON.stringify(data),
          });
          return data;
        },
      },
    });
    const { id } = await queue.add('job', JSON.parse(text), { retention: '1h' });
    await ended(id);
    expect(seen).toEqual([
      { keys: ['__proto__', 'constructor', 'a'], prototype: Object.prototype, json: text },
    ]);
    const job = (await queue.get(id))!;
    expect(JSON.stringify(job.data)).toBe(text);
    expect(JSON.stringify(job.result)).toBe(text);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('is refused at the start if it is a registration, with all faults in one error', async () => {
    const queues = [
      { name: 'a b' },
      { name: '' },
      { name: 'x'.repeat(129) },
      { name: 'fine', defaults: { attempts: -1, backoff: 'soon' } },
      { name: 'fine too', events: 'no' },
    ] as unknown as QueueOptions[];
    const error = await bootQueue(redis, { queues, watch: false }).then(
      () => expect.fail('it started'),
      (thrown: BootstrapError) => thrown,
    );
    expect(error).toBeInstanceOf(BootstrapError);
    for (const text of [
      'got "a b" (string)',
      'got "" (string)',
      'got "xxx',
      "registerQueue('fine').defaults.attempts must be an integer from 1",
      "registerQueue('fine').defaults.backoff must be",
      'got "fine too"',
    ])
      expect(error.message).toContain(text);
    expect(await redis.keys()).toEqual([]);
  });
});

describe('a Redis out of reach', () => {
  const redis = useRedis();

  it('makes add reject in time: not applied without a connection, unknown if the connection went silent', async () => {
    const cut = await startCut(redis.url);
    const root = { connection: cut.url, enqueueTimeout: 400 };
    const { queue, producer } = await bootQueue(redis, { root, watch: false });
    // This time may be too short on a busy machine. Adding again gives the same job.
    await until(() => queue.add('job', 1, { id: 'before' }), PATIENT);

    cut.blackhole();
    const silent = await timed(() => queue.add('job', 1, { id: 'silent' }));
    expect(silent.error).toBeInstanceOf(RedisUnavailableError);
    expect(silent.error).toMatchObject({
      code: 'GODWIT_REDIS_UNAVAILABLE',
      applied: 'unknown',
      message: expect.stringMatching(
        /; whether it took effect is unknown, make it again with the same job id$/,
      ),
    });

    const other = await timed(() => queue.pause());
    expect(other.error).toHaveProperty(
      'message',
      expect.stringMatching(/^pause: .*; whether it took effect is unknown$/),
    );

    cut.refuse();
    cut.drop();
    const calls = [
      () => queue.add('job', 1),
      () => producer.add('work', 'job', 1),
      () => queue.addBulk([{ name: 'job', data: 1 }]),
    ];
    for (const { error, ms } of [silent, ...(await Promise.all(calls.map(timed)))]) {
      expect(ms).toBeLessThan(5_000);
      expect(ms).toBeGreaterThan(350);
      expect(error).toBeInstanceOf(RedisUnavailableError);
    }
    const refused = await timed(() => queue.add('job', 1));
    expect(refused.error).toMatchObject({
      applied: 'no',
      message: expect.stringMatching(/; nothing was changed, the call can be made again$/),
    });

    await cut.heal();
    const again = await until(() => queue.add('job', 1, { id: 'before' }), PATIENT);
    expect(again).toMatchObject({ duplicate: true });
    expect(await bodyCount(redis)).toBeLessThanOrEqual(2);
  });
});

function tells(text: string, message: string | RegExp): boolean {
  return typeof message === 'string' ? text.includes(message) : message.test(text);
}

async function timed(call: () => Promise<unknown>): Promise<{ error: unknown; ms: number }> {
  const began = performance.now();
  const error = await call().then(
    () => expect.fail('it was taken'),
    (thrown: unknown) => thrown,
  );
  return { error, ms: performance.now() - began };
}

describe('a Redis that does not fit', () => {
  const server = useServer({ args: ['--maxmemory-policy', 'allkeys-lru'] });
  const redis = useRedis({ server });

  it('is logged at the start: one warning for eviction, one for no file on disk', async () => {
    const { logs } = await bootQueue(redis, { watch: false });
    const said = logs.complaints.filter((text) => text.includes('Redis'));
    expect(said).toEqual([
      'Redis may evict keys (maxmemory-policy allkeys-lru): under memory pressure jobs can be lost; set it to noeviction',
      expect.stringMatching(
        /^Redis keeps no append-only file .* are lost when it restarts; set appendonly to yes$/,
      ),
    ]);
  });

  it.each([
    ['redis_version:6.2.14', 'Redis 6.2.14 is too old'],
    ['redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:7.1.0', 'Valkey 7.1.0 is too old'],
  ])('is refused at the start if it is too old: %s', async (info, message) => {
    const connection = await oldRedis(info);
    const logs = new Logs();
    const error = await bootQueue(redis, { root: { connection }, watch: false, logs }).then(
      () => expect.fail('it started'),
      (thrown: Error) => thrown,
    );
    expect(error).toBeInstanceOf(UnsupportedRedisError);
    expect(error.message).toBe(
      `${message}: Redis 7.0 or Valkey 7.2 is needed, for scripts that run at maxmemory`,
    );
  });
});

/** A server that reports some version of Redis, and answers only the first questions of a client. */
async function oldRedis(info: string): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => {
      // ioredis sends whole commands, and none of these contains a line that looks like the start of a command.
      for (const command of data.toString().split(/(?=^\*\d)/m)) {
        const word = command.split('\r\n')[2]?.toLowerCase();
        if (word === 'info') socket.write(`$${info.length + 2}\r\n${info}\r\n\r\n`);
        else if (word === 'time') socket.write('*2\r\n$1\r\n1\r\n$1\r\n0\r\n');
        else socket.write('+OK\r\n');
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return `redis://127.0.0.1:${(server.address() as { port: number }).port}`;
}
