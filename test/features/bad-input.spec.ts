import { createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BootstrapError, GodwitError, RedisUnavailableError, UnsupportedRedisError } from '#lib/errors.js';
import { defineJob } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import type { QueueOptions } from '#lib/options/module-options.js';
import { startCut } from '../support/cut.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, Logs, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';

const welcome = defineJob('work', 'welcome', z.object({ to: z.email(), times: z.number().max(3) }));

type Call = (app: QueueApp) => Promise<unknown>;
type Case = [what: string, code: string, message: string | RegExp, call: Call];

const add =
  (data: unknown, options?: unknown): Call =>
  ({ queue }) =>
    queue.add('job', data, options as never);
const withOptions = (options: unknown): Call => add(1, options);
const withId = (id: unknown): Call => withOptions({ id });
const named =
  (name: unknown): Call =>
  ({ queue }) =>
    queue.add(name as string, 1);
const to =
  (queue: unknown): Call =>
  ({ producer }) =>
    producer.add(queue as string, 'job', 1);

const circular: Record<string, unknown> = { a: {} };
circular['a'] = { back: circular };
const deep = () => {
  let data: unknown = 1;
  for (let i = 0; i < 1001; i++) data = [data];
  return data;
};

const OPTION = 'GODWIT_INVALID_OPTION';
const PAYLOAD = 'GODWIT_INVALID_PAYLOAD';
const ID = 'GODWIT_INVALID_JOB_ID';
const NAME = 'GODWIT_INVALID_JOB_NAME';
const QUEUE = 'GODWIT_INVALID_QUEUE_NAME';

const cases: Case[] = [
  [
    'an unknown queue',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not registered; add QueueModule.registerQueue({ name: 'nowhere' }) to a module (registered: work)",
    to('nowhere'),
  ],
  [
    'an unknown queue of a definition',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    ({ producer }) => producer.add(defineJob('nowhere', 'x'), 1),
  ],
  [
    'an unknown queue for a bulk',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    ({ producer }) => producer.addBulk('nowhere', []),
  ],
  [
    'an unknown queue to wait for',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    ({ producer }) => producer.addAndWait('nowhere', 'x', 1),
  ],
  [
    'an unknown queue to listen to',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    async ({ events }) => events.of('nowhere'),
  ],
  [
    'an unknown queue to pause',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    async ({ runtime }) => runtime.pause('nowhere'),
  ],
  [
    'a queue name that no queue can have',
    QUEUE,
    'a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got "a b" (string)',
    to('a b'),
  ],
  ['an empty queue name', QUEUE, 'got "" (string)', to('')],
  ['a queue name that is too long', QUEUE, /got "x{100,}\.\.\. \(string\)$/, to('x'.repeat(129))],
  ['no queue name', QUEUE, 'got undefined', to(undefined)],
  ['null as the queue name', QUEUE, 'got null (null)', to(null)],
  [
    'a queue name that would forge a line of a log',
    QUEUE,
    String.raw`got "a\nERROR" (string)`,
    to('a\nERROR'),
  ],

  [
    'an empty id',
    ID,
    'a job id is 1 to 255 bytes of well-formed text without control characters: "" (string) is empty',
    withId(''),
  ],
  ['an id of 256 bytes', ID, 'is 256 bytes long', withId('é'.repeat(128))],
  [
    'an id with a control character',
    ID,
    String.raw`"a\nb" (string) holds the control character U+000A at position 1`,
    withId('a\nb'),
  ],
  ['an id with a NUL', ID, 'U+0000 at position 0', withId('\0')],
  ['an id with a C1 control character', ID, 'U+009B at position 0', withId('\u009b')],
  ['an id with a lone surrogate', ID, 'holds the lone surrogate U+D800 at position 1', withId('a\ud800')],
  ['an id that is a number', ID, '42 (number) is not a string', withId(42)],
  ['a wrong id to look up', ID, 'is empty', ({ queue }) => queue.get('')],
  ['a wrong id to remove', ID, 'U+000A', ({ queue }) => queue.remove('a\nb')],
  ['a wrong id to promote', ID, 'is not a string', ({ queue }) => queue.promote(undefined as never)],
  ['a wrong id to retry', ID, 'U+D800', ({ queue }) => queue.retryDead('\ud800')],
  ['an empty job name', NAME, 'a job name is 1 to 255 bytes', named('')],
  ['a job name with a line break', NAME, 'U+000A at position 1', named('a\nb')],
  ['no job name', NAME, 'undefined is not a string', named(undefined)],

  ['undefined as data', PAYLOAD, 'add().data is undefined, which JSON cannot hold', add(undefined)],
  ['a function', PAYLOAD, 'add().data is a function', add(() => 1)],
  ['a function inside', PAYLOAD, 'add().data.items[1].run is a function', add({ items: [0, { run() {} }] })],
  ['a BigInt', PAYLOAD, 'add().data["the total"] is a BigInt', add({ 'the total': 1n })],
  ['a symbol', PAYLOAD, 'add().data[0] is a symbol', add([Symbol('s')])],
  ['a circle', PAYLOAD, 'add().data.a.back is a circular reference', add(circular)],
  ['NaN', PAYLOAD, 'add().data.n is NaN', add({ n: Number.NaN })],
  ['Infinity', PAYLOAD, 'add().data is Infinity', add(Infinity)],
  ['undefined in a list', PAYLOAD, 'add().data[1] is undefined', add([1, undefined])],
  [
    'a hole in a list',
    PAYLOAD,
    'add().data[0] is a hole in an array',
    add(Array.from({ length: 1 }).fill(0) && [, 1]),
  ],
  ['a Map', PAYLOAD, 'add().data is a Map', add(new Map())],
  ['an invalid Date', PAYLOAD, 'add().data.at is an invalid Date', add({ at: new Date('x') })],
  ['an Error', PAYLOAD, 'add().data is an Error', add(new Error('x'))],
  ['data nested too deep', PAYLOAD, 'is nested deeper than 1,000 levels', add(deep())],
  [
    'data that is too large',
    'GODWIT_PAYLOAD_TOO_LARGE',
    'the data of the job takes 1002 bytes, more than maxPayloadBytes (1000)',
    add('x'.repeat(1000)),
  ],
  [
    'data that is too large in bytes only',
    'GODWIT_PAYLOAD_TOO_LARGE',
    'takes 1202 bytes',
    add('é'.repeat(600)),
  ],
  [
    'data that is far too large',
    'GODWIT_PAYLOAD_TOO_LARGE',
    /takes at least \d+ bytes/,
    add(Array.from({ length: 10_000 }).fill('text')),
  ],

  [
    'a negative delay',
    OPTION,
    "add().options.delay must be a duration in ms or like '10s', not negative, got -1 (number)",
    withOptions({ delay: -1 }),
  ],
  [
    'a NaN delay',
    OPTION,
    "add().options.delay must be a duration in ms or like '10s', got NaN (number)",
    withOptions({ delay: Number.NaN }),
  ],
  ['a delay with a fraction', OPTION, 'in whole milliseconds, got 1.5 (number)', withOptions({ delay: 1.5 })],
  ['a delay without end', OPTION, 'at most 10 years', withOptions({ delay: Infinity })],
  [
    'a delay that does not parse',
    OPTION,
    `add().options.delay must be a duration in ms or like '10s', got "soon" (string)`,
    withOptions({ delay: 'soon' }),
  ],
  ['an empty delay', OPTION, 'got "" (string)', withOptions({ delay: '' })],
  ['a delay of a thousand years', OPTION, 'at most 10 years', withOptions({ delay: '1000y' })],
  [
    'runAt that is no date',
    OPTION,
    'add().options.runAt must be a valid Date or whole ms since 1970',
    withOptions({ runAt: new Date('x') }),
  ],
  ['runAt before 1970', OPTION, 'add().options.runAt must be', withOptions({ runAt: -1 })],
  [
    'runAt with delay',
    OPTION,
    'add().options.runAt must be left out where delay is given',
    withOptions({ runAt: 1, delay: 1 }),
  ],
  [
    'negative attempts',
    OPTION,
    'add().options.attempts must be an integer from 1 to 1000000, got -1 (number)',
    withOptions({ attempts: -1 }),
  ],
  ['no attempts', OPTION, 'got 0 (number)', withOptions({ attempts: 0 })],
  ['NaN attempts', OPTION, 'got NaN (number)', withOptions({ attempts: Number.NaN })],
  ['half an attempt', OPTION, 'got 1.5 (number)', withOptions({ attempts: 1.5 })],
  ['attempts as text', OPTION, 'got "3" (string)', withOptions({ attempts: '3' })],
  [
    'a negative priority',
    OPTION,
    'add().options.priority must be an integer from 0 to 2097151',
    withOptions({ priority: -1 }),
  ],
  ['a priority that is too high', OPTION, 'got 2097152 (number)', withOptions({ priority: 2_097_152 })],
  [
    'a timeout of 0',
    OPTION,
    'add().options.timeout must be a duration from 1 ms',
    withOptions({ timeout: 0 }),
  ],
  ['a timeout no timer can hold', OPTION, 'to 2147483647 ms', withOptions({ timeout: '30d' })],
  [
    'a retention that does not parse',
    OPTION,
    'add().options.retention',
    withOptions({ retention: '1 fortnight' }),
  ],
  ['expiresIn of 0', OPTION, 'add().options.expiresIn', withOptions({ expiresIn: 0 })],
  [
    'a backoff function for a job',
    OPTION,
    'add().options.backoff must be plain data, since it is stored',
    withOptions({ backoff: () => 1 }),
  ],
  [
    'a backoff of unknown type',
    OPTION,
    "add().options.backoff.type must be 'fixed' or 'exponential'",
    withOptions({ backoff: { type: 'linear', delay: 1 } }),
  ],
  [
    'a backoff without a delay',
    OPTION,
    'add().options.backoff.delay must be',
    withOptions({ backoff: { type: 'fixed' } }),
  ],
  [
    'a backoff with a negative wait',
    OPTION,
    'add().options.backoff[1] must be',
    withOptions({ backoff: [1, -1] }),
  ],
  [
    'an empty backoff list',
    OPTION,
    'add().options.backoff must be a list of 1 to 1000 durations',
    withOptions({ backoff: [] }),
  ],
  [
    'a misspelt option',
    OPTION,
    'add().options.delya is not an option; did you mean delay?',
    withOptions({ delya: 1 }),
  ],
  [
    '__proto__ as an option',
    OPTION,
    'add().options.__proto__ is not an option',
    withOptions(JSON.parse('{"__proto__":{"delay":1}}')),
  ],
  [
    'options that are no object',
    OPTION,
    'add().options must be an object, got "1s" (string)',
    withOptions('1s'),
  ],
  ['null as options', OPTION, 'add().options must be an object, got null (null)', withOptions(null)],
  [
    'a wait that does not parse',
    OPTION,
    'addAndWait().options.waitTimeout must be a duration',
    ({ queue }) => queue.addAndWait('job', 1, { waitTimeout: 'long' }),
  ],
  [
    'null as options of a wait',
    OPTION,
    'addAndWait().options must be an object',
    ({ queue }) => queue.addAndWait('job', 1, null as never),
  ],
  [
    'data of a wait that JSON cannot hold',
    PAYLOAD,
    'addAndWait().data is a BigInt',
    ({ queue }) => queue.addAndWait('job', 1n),
  ],
  [
    'a since that is no event',
    OPTION,
    'of().since must be the id of an event',
    async ({ events }) => events.of('work', { since: '1-0' }),
  ],

  [
    'data against the schema',
    'GODWIT_SCHEMA_VIOLATION',
    /^the data of job 'welcome' in queue 'work' does not match its schema: to: .+; times: .+/,
    ({ producer }) => producer.add(welcome, { to: 'ada', times: 9 }),
  ],
  [
    'data against the schema in a bulk',
    'GODWIT_SCHEMA_VIOLATION',
    /^addBulk\(\)\[1\]: the data of job 'welcome'/,
    ({ producer }) =>
      producer.addBulk(welcome, [
        { data: { to: 'a@b.org', times: 1 } },
        { data: { to: 'a@b.org', times: 9 } },
      ]),
  ],
  [
    'data against the schema to wait for',
    'GODWIT_SCHEMA_VIOLATION',
    'times: ',
    ({ producer }) => producer.addAndWait(welcome, { to: 'a@b.org', times: 9 }),
  ],
];

describe('a wrong call', () => {
  const redis = useRedis();

  it('rejects with a typed error that names the place, and changes nothing in Redis', async () => {
    const app = await bootQueue(redis, { watch: false, queue: { maxPayloadBytes: 1000 } });
    for (const [what, code, message, call] of cases) {
      const error = await call(app).then(
        (value) => expect.fail(`${what} was taken: ${JSON.stringify(value)}`),
        (thrown: GodwitError) => thrown,
      );
      expect(error, what).toBeInstanceOf(GodwitError);
      expect(error.code, what).toBe(code);
      expect(error.name, what).toBe(error.constructor.name);
      if (typeof message === 'string') expect(error.message, what).toContain(message);
      else expect(error.message, what).toMatch(message);
      // oxlint-disable-next-line no-control-regex
      expect(error.message, what).not.toMatch(/[\u0000-\u001f\u007f-\u009f\ud800]/u);
    }
    // `addAndWait` may have looked for the number of the last event, but nobody has written a thing.
    expect(await redis.keys()).toEqual([]);
    expect(await app.queue.counts()).toEqual({ waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0 });
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

  it('is refused at the start where it is a registration, with all faults in one error', async () => {
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

  it('makes add reject in time: nothing stored where there is no connection, unknown where it went silent', async () => {
    const cut = await startCut(redis.url);
    const root = { connection: cut.url, enqueueTimeout: 400 };
    const { queue, producer } = await bootQueue(redis, { root, watch: false });
    await queue.add('job', 1, { id: 'before' });

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
    expect(await redis.admin.hlen(`{${redis.prefix}:work}:jobs`)).toBeLessThanOrEqual(2);
  });
});

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

  it('is said at the start: one warning for eviction, one for no file on disk', async () => {
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
  ])('is refused at the start where it is too old: %s', async (info, message) => {
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

/** A server that says it is one version of Redis, and knows only what is asked before anything else. */
async function oldRedis(info: string): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => {
      // ioredis sends whole commands, and these hold no line that looks like the start of one.
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
