import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { GodwitError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import type { ConnectionOption } from '#lib/options/connection.js';
import { startCut } from '../support/cut.js';
import { bootQueue, keyOf, Logs, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';

// Canaries: a password, and what is in jobs. Neither may turn up where people read logs and errors.
const PASSWORD = 'canary-of-the-password';
const PAYLOAD = 'canary-in-the-payload';
const redis = useRedis({ server: useServer() });

/** Everything that can be reached from an error, as a logger that prints nested objects shows it. */
const shown = (value: unknown) => inspect(value, { depth: 30, showHidden: true, maxStringLength: null });

async function withPassword(): Promise<URL> {
  await redis.admin.call('ACL', 'SETUSER', 'canary', 'on', `>${PASSWORD}`, '~*', '&*', '+@all');
  const url = new URL(redis.url);
  url.username = 'canary';
  url.password = PASSWORD;
  return url;
}

const failing = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it was taken'),
    (error: unknown) => error,
  );

it.each<[string, (url: string) => unknown]>([
  ['another scheme', (url) => url.replace('redis:', 'http:')],
  ['no scheme', (url) => url.replace('redis://', '')],
  ['a slash in the password', (url) => url.replace(PASSWORD, `${PASSWORD}/x`)],
  ['a hash in the password', (url) => url.replace(PASSWORD, `x#${PASSWORD}`)],
  ['an at in the password', (url) => url.replace(PASSWORD, `x@/${PASSWORD}`)],
  ['a port that is none', (url) => `${url.replace(/:\d+$/, '')}:port`],
  ['a space', (url) => `${url} `.replace('@', '@ ')],
  ['a keyPrefix in the query', (url) => `${url}?keyPrefix=x`],
  ['a password in the query', (url) => `${url}/none?password=${PASSWORD}`],
  ['an object around it', (url) => ({ url: url.replace('redis:', 'amqp:') })],
  ['options', () => ({ port: Number.NaN, password: PASSWORD })],
  ['options with a keyPrefix', () => ({ keyPrefix: 'x', password: PASSWORD })],
  ['a list', () => [{ password: PASSWORD }]],
])('a connection option that is refused for %s is not shown with its password', async (_, wrong) => {
  const url = (await withPassword()).href;
  const logs = new Logs();
  const error = await failing(
    bootQueue(redis, { root: { connection: wrong(url) as ConnectionOption }, logs, watch: false }),
  );
  expect(error).toBeInstanceOf(GodwitError);
  expect(shown([error, logs.lines])).not.toContain(PASSWORD);
});

it('no connection error shows the password or the data of jobs', async () => {
  const url = await withPassword();
  const cut = await startCut(url.href);
  const app = await bootQueue(redis, {
    root: { connection: cut.url, enqueueTimeout: 1_000 },
    queue: { defaults: { attempts: 1 } },
    handlers: {
      fail: ({ data }: Job) => {
        throw new Error(`cannot send ${JSON.stringify(data)} with ${PASSWORD}`);
      },
      hold: () => new Promise<void>(() => undefined),
    },
  });
  const links: unknown[] = [];
  app.get<QueueEngine>(QUEUE_ENGINE).onLink((event) => links.push(event));
  const data = { secret: PAYLOAD };
  const errors: unknown[] = [];
  const add = async (name: string) => errors.push(await failing(app.queue.add(name, data)));

  const { id } = await app.queue.add('fail', data);
  await app.ended(id);
  // It belongs there, for whoever looks at the job.
  expect((await app.queue.get(id))!.failure!.message).toContain(PAYLOAD);

  // Refused: the keys are of another type, the memory is full, the user has lost the right, the password is another.
  await redis.admin.set(keyOf(redis, 'delayed'), 'foreign');
  errors.push(await failing(app.queue.add('job', data, { delay: '1h' })));
  await redis.admin.del(keyOf(redis, 'delayed'));
  await redis.admin.config('SET', 'maxmemory', 1);
  await add('job');
  await redis.admin.config('SET', 'maxmemory', 0);
  await redis.admin.call('ACL', 'SETUSER', 'canary', '-hset', '-hsetnx', '-hmset');
  await add('job');
  await redis.admin.call('ACL', 'SETUSER', 'canary', '+@all');
  await redis.admin.call('ACL', 'SETUSER', 'canary', 'resetpass', '>another');
  cut.drop();
  await add('job');
  await redis.admin.call('ACL', 'SETUSER', 'canary', `>${PASSWORD}`);
  await until(() => app.queue.add('hold', data), PATIENT);

  // Three faults of the connection: the reply is lost, nothing arrives, nobody listens.
  const addCut = (name: string) => app.queue.add(name, data).catch((error: unknown) => errors.push(error));
  cut.cutOnReply('job', 3);
  await addCut('job');
  cut.blackhole();
  await addCut('job');
  cut.refuse();
  cut.drop();
  await add('job');
  errors.push(await failing(app.queue.addBulk([{ name: 'job', data }])));
  errors.push(await failing(app.queue.addAndWait('job', data, { waitTimeout: 300 })));
  await cut.heal();
  await until(() => app.queue.counts(), PATIENT);

  for (const error of errors) expect(error).toBeInstanceOf(GodwitError);
  const said = shown([errors, links, app.logs.lines]);
  expect(app.logs.lines.length).toBeGreaterThan(2);
  expect(said).not.toContain(PASSWORD);
  expect(said).not.toContain(PAYLOAD);
  await app.close();
  await redis.flush();
});

it('refused data is not shown, only the path of the fault', async () => {
  const app = await bootQueue(redis, { watch: false, queue: { maxPayloadBytes: 100 } });
  const wrong = [
    { secret: PAYLOAD, total: 1n },
    { secret: PAYLOAD, run: () => PAYLOAD },
    { secret: PAYLOAD.repeat(100) },
    [PAYLOAD, undefined],
    new Map([[PAYLOAD, PAYLOAD]]),
    Object.assign(new Error(PAYLOAD), { a: 1 }),
  ];
  for (const data of wrong) {
    const error = await failing(app.queue.add('job', data));
    expect(error).toBeInstanceOf(GodwitError);
    expect(shown(error)).not.toContain(PAYLOAD);
  }
  expect(shown(app.logs.lines)).not.toContain(PAYLOAD);
});
