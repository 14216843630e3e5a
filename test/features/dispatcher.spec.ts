import { Injectable, Module } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { getDispatcherToken } from '#lib/decorators/metadata.js';
import { InjectDispatcher } from '#lib/decorators/inject-queue.decorator.js';
import { Dispatcher, type DispatcherStatus } from '#lib/dispatcher/dispatcher.js';
import { BootstrapError } from '#lib/errors.js';
import type { DispatcherOptions } from '#lib/options/dispatcher-options.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { bootApp } from '../support/app.js';
import { isBlocked } from '../support/blocked.js';
import { bootQueue, Logs, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { collect, until } from '../support/wait.js';
import { compileApp } from './fakes.js';

// A server of this spec, since it goes away here.
const server = useServer({ args: KEEPING });
const redis = useRedis({ server, rights: 'all' });

/** Keys of another program. They get no prefix. */
const KEYS = { delayedKey: 'mails:delayed', readyKey: 'mails:ready' } as const;
const SOON = { pollInterval: 50 } as const;

beforeEach(() => redis.admin.flushall());
afterEach(() => redis.admin.flushall());

async function boot(dispatchers: readonly DispatcherOptions[], root: QueueModuleOptions = {}) {
  const logs = new Logs();
  const booted = await bootApp({
    imports: [
      QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix, ...root }),
      QueueModule.registerDispatcher(...dispatchers),
    ],
    logger: logs,
  });
  const dispatcher = (name: string = KEYS.delayedKey) => booted.get<Dispatcher>(getDispatcherToken(name));
  return { ...booted, logs, dispatcher };
}

const put = (due: number | string, ...tasks: string[]) =>
  redis.admin.zadd(KEYS.delayedKey, ...tasks.flatMap((task) => [due, task]));
const ready = () => redis.admin.lrange(KEYS.readyKey, 0, -1);
const listed = (count: number, key: string = KEYS.readyKey) =>
  until(async () => (await redis.admin.llen(key)) === count, PATIENT);
const seconds = async () => Number((await redis.admin.time())[0]);
const states = (values: readonly DispatcherStatus[]) => values.map(({ state }) => state);

describe('a dispatcher', () => {
  it('starts with the application, reports what it moves, and stops with it', async () => {
    await put(1, 'there before');
    const { dispatcher, close, logs } = await boot([{ ...KEYS, ...SOON }]);
    await listed(1);
    const moved = collect(dispatcher().moved$);
    const statuses = collect(dispatcher().status$);
    await put(2, 'b', 'c');
    await put(1, 'a');
    await listed(4);
    expect(await ready()).toEqual(expect.arrayContaining(['there before', 'a', 'b', 'c']));
    // The list may show a batch before the dispatcher gets its answer. The answer of the first one is late, or lost.
    const later = () => moved.values.filter((batch) => batch.ready > 1);
    await until(() => later().reduce((sum, { dispatched }) => sum + dispatched, 0) === 3, PATIENT);
    const { at, ...counts } = moved.values.at(-1)!;
    expect(Math.abs(at / 1000 - (await seconds()))).toBeLessThan(30);
    expect(counts).toEqual({ dispatched: expect.any(Number), delayed: 0, ready: 4 });
    expect(dispatcher().status).toEqual({ state: 'running' });
    await close();
    expect(dispatcher().status).toEqual({ state: 'stopped' });
    expect(states(statuses.values)).toEqual(['running', 'stopped']);
    expect([moved.ended, statuses.ended]).toEqual([true, true]);
    await put(1, 'too late');
    expect(await redis.admin.zcard(KEYS.delayedKey)).toBe(1);
    expect(logs.lines.filter(({ text }) => text.includes('dispatchers started'))).toHaveLength(1);
  });

  it('moves a task when it is due, without polling all the time', async () => {
    const { dispatcher, get } = await boot([{ ...KEYS, pollInterval: '1h' }], { autoStart: false });
    const moved = collect(dispatcher().moved$);
    const due = (await seconds()) + 2.25;
    await put(due, 'task');
    await get(QueueRuntime).start();
    const { at } = await moved.first(() => true, PATIENT);
    expect(at / 1000).toBeGreaterThanOrEqual(due - 0.1);
    expect(at / 1000).toBeLessThan(due + 5);
  });

  it('finds an earlier task of another program within its pollInterval', async () => {
    await put((await seconds()) + 3_600, 'later');
    const { dispatcher } = await boot([{ ...KEYS, pollInterval: '100ms' }]);
    const moved = collect(dispatcher().moved$);
    await put(1, 'earlier');
    expect(await moved.first(() => true, PATIENT)).toMatchObject({ dispatched: 1, delayed: 1, ready: 1 });
  });

  it('reads scores in milliseconds on request', async () => {
    const now = (await seconds()) * 1000;
    await put(now, 'due');
    await put(now + 3_600_000, 'later');
    await boot([{ ...KEYS, ...SOON, unit: 'ms' }]);
    await listed(1);
    expect(await ready()).toEqual(['due']);
  });

  it('takes batches of its size, one after another while more is due', async () => {
    const tasks = Array.from({ length: 95 }, (_, i) => `task-${i}`);
    await redis.admin.zadd(KEYS.delayedKey, ...tasks.flatMap((task, i) => [i, task]));
    const { dispatcher, get } = await boot([{ ...KEYS, pollInterval: '1h', batchSize: 10 }], {
      autoStart: false,
    });
    const moved = collect(dispatcher().moved$);
    expect(dispatcher().status).toEqual({ state: 'stopped' });
    await get(QueueRuntime).start();
    await listed(95);
    expect(await ready()).toEqual(tasks);
    await moved.take(10, () => true, PATIENT);
    expect(moved.values.map(({ dispatched }) => dispatched)).toEqual([...Array<number>(9).fill(10), 5]);
  });

  it('does not move tasks while the list is full', async () => {
    await put(1, 'a', 'b', 'c');
    await boot([{ ...KEYS, ...SOON, maxReady: 2 }]);
    await listed(2);
    expect(await redis.admin.blpop(KEYS.readyKey, 1)).toEqual([KEYS.readyKey, 'a']);
    await until(async () => (await redis.admin.zcard(KEYS.delayedKey)) === 0, PATIENT);
    expect(await ready()).toEqual(['b', 'c']);
  });

  it('does not run if the role is producer', async () => {
    await put(1, 'due');
    const { dispatcher, close } = await boot([{ ...KEYS, ...SOON }], { role: 'producer' });
    expect(dispatcher().status).toEqual({ state: 'stopped' });
    await close();
    expect(await redis.admin.zcard(KEYS.delayedKey)).toBe(1);
  });

  it('is enough for the role worker to have something to do', async () => {
    const { logs } = await boot([{ ...KEYS, ...SOON }], { role: 'worker' });
    expect(logs.complaints.filter((text) => text.includes('nothing will run'))).toEqual([]);
  });

  it('stops and starts with the runtime', async () => {
    const { dispatcher, get } = await boot([{ ...KEYS, ...SOON }]);
    await get(QueueRuntime).stop();
    await put(1, 'due');
    expect(dispatcher().status).toEqual({ state: 'stopped' });
    await get(QueueRuntime).start();
    await listed(1);
  });
});

it('several work at the same time, also for the same keys in several applications', async () => {
  const other = { name: 'other', delayedKey: 'o:delayed', readyKey: 'o:ready', ...SOON };
  const here = await boot([{ ...KEYS, ...SOON, batchSize: 3 }, other]);
  await boot([{ ...KEYS, ...SOON, batchSize: 7 }]);
  expect(here.dispatcher('other').readyKey).toBe('o:ready');
  const tasks = Array.from({ length: 1_000 }, (_, i) => `task-${String(i).padStart(4, '0')}`);
  await redis.admin.zadd('o:delayed', 1, 'another');
  await put(1, ...tasks);
  await listed(1_000);
  await listed(1, 'o:ready');
  expect(await ready()).toEqual(tasks);
});

it('needs no connection of its own beside queues', async () => {
  const imports = [QueueModule.registerDispatcher({ ...KEYS, ...SOON })];
  const { queue, ended } = await bootQueue(redis, { imports, handlers: { '*': () => 1 }, watch: true });
  await put(1, 'task');
  await listed(1);
  const { id } = await queue.add('job', null);
  await ended(id);
  // It sleeps again, on the last connection that it opens.
  await isBlocked(redis);
  const names = await until(async () => {
    const found = (await redis.clients()).map(({ name }) => name!.split(':').at(-1)!).toSorted();
    // A connection that the heartbeat is opening has no name yet.
    return found.includes('') ? undefined : found;
  }, PATIENT);
  // The heartbeat has a connection while a job runs for longer.
  expect(names.filter((name) => name !== 'heartbeat')).toEqual(['blocking', 'command', 'events']);
});

describe('what goes wrong', () => {
  it('a key of another type: it is logged once, shown in the status, and the dispatcher continues once the key is correct', async () => {
    await redis.admin.set(KEYS.readyKey, 'a text');
    await put(1, 'due');
    const { dispatcher, logs } = await boot([{ ...KEYS, ...SOON }]);
    const statuses = collect(dispatcher().status$);
    await statuses.first(({ state }) => state === 'failing', PATIENT);
    expect(dispatcher().status).toMatchObject({
      state: 'failing',
      error: { code: 'GODWIT_REDIS_REFUSED', reply: 'WRONGTYPE' },
    });
    const looks = async () =>
      Number(/cmdstat_type:calls=(\d+)/.exec(await redis.admin.info('commandstats'))?.[1]);
    await until(async () => (await looks()) >= 3, PATIENT);
    await redis.admin.del(KEYS.readyKey);
    await statuses.first(({ state }) => state === 'running', PATIENT);
    await listed(1);
    const said = logs.complaints.filter((text) => text.includes('dispatcher'));
    expect(said).toEqual([
      expect.stringMatching(
        /^dispatcher 'mails:delayed' cannot move tasks, retrying: .*"mails:ready" is a string/,
      ),
    ]);
    await until(
      () => logs.lines.some(({ text }) => text === "dispatcher 'mails:delayed' works again"),
      PATIENT,
    );
  });

  it('Redis restarts: the dispatcher continues, and every task is on the list once', async () => {
    const { dispatcher } = await boot([{ ...KEYS, ...SOON }]);
    await put(1, 'before');
    await listed(1);
    await server.restart();
    await put(1, 'after');
    await listed(2);
    expect(await ready()).toEqual(['before', 'after']);
    await until(() => dispatcher().status.state === 'running', PATIENT);
  });

  it('Redis is away: the application starts, logs the failure, and can be stopped', async () => {
    const { dispatcher, close } = await boot([{ ...KEYS, ...SOON }], { connection: 'redis://127.0.0.1:1' });
    const { error } = (await collect(dispatcher().status$).first(
      ({ state }) => state === 'failing',
      PATIENT,
    )) as {
      error: Error;
    };
    expect(error).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE' });
    await close();
    expect(dispatcher().status).toEqual({ state: 'stopped' });
  });

  it('a subscriber throws: it is logged, stays subscribed, and the tasks are moved', async () => {
    const { dispatcher, logs } = await boot([{ ...KEYS, ...SOON }]);
    let told = 0;
    dispatcher().moved$.subscribe(() => {
      told += 1;
      throw new Error('mine');
    });
    await put(1, 'a');
    await listed(1);
    await put(1, 'b');
    await listed(2);
    await until(() => told === 2, PATIENT);
    expect(logs.complaints).toContain('a subscriber to events threw; it stays subscribed: mine');
  });
});

describe('registering', () => {
  it('makes it injectable by its name, or by its delayedKey, in the importing module', async () => {
    @Injectable()
    class Watcher {
      constructor(
        @InjectDispatcher('mails') readonly named: Dispatcher,
        @InjectDispatcher('sms:delayed') readonly byKey: Dispatcher,
      ) {}
    }
    const sms = { delayedKey: 'sms:delayed', readyKey: 'sms:ready' };
    const { app, init } = await compileApp({
      imports: [QueueModule.forRoot(), QueueModule.registerDispatcher({ name: 'mails', ...KEYS }, sms)],
      providers: [Watcher],
    });
    await init();
    const { named, byKey } = app.get(Watcher);
    expect(named).toBeInstanceOf(Dispatcher);
    expect([named.name, named.delayedKey, named.readyKey]).toEqual(['mails', 'mails:delayed', 'mails:ready']);
    expect(byKey.name).toBe('sms:delayed');
  });

  it('takes options that are known only at start', async () => {
    @Module({ providers: [{ provide: 'CONFIG', useValue: { ready: 'a:ready' } }], exports: ['CONFIG'] })
    class Config {}
    const dispatcher = QueueModule.registerDispatcherAsync({
      name: 'late',
      imports: [Config],
      inject: ['CONFIG'],
      useFactory: (config: { ready: string }) => ({ delayedKey: 'a:delayed', readyKey: config.ready }),
    });
    const { app } = await compileApp({ imports: [QueueModule.forRoot(), dispatcher] });
    const { name, readyKey } = app.get<Dispatcher>(getDispatcherToken('late'));
    expect([name, readyKey]).toEqual(['late', 'a:ready']);
  });

  it('is one dispatcher if several modules ask for the same', async () => {
    const register = () => QueueModule.registerDispatcher({ ...KEYS });
    @Module({ imports: [register()] })
    class Feature {}
    const { init } = await compileApp({ imports: [QueueModule.forRoot(), register(), Feature] });
    await expect(init()).resolves.toBeUndefined();
  });

  const faultsOf = async (...dispatchers: unknown[]) => {
    const imports = [
      QueueModule.forRoot({ prefix: 'shop' }),
      QueueModule.registerDispatcher(...(dispatchers as DispatcherOptions[])),
    ];
    const { init } = await compileApp({ imports });
    const error = await init().then(
      () => expect.fail('it started'),
      (thrown: unknown) => thrown as BootstrapError,
    );
    expect(error).toBeInstanceOf(BootstrapError);
    return error.faults;
  };

  it.each([
    [null, 'registerDispatcher() must be an object, got null (null)'],
    [undefined, 'registerDispatcher() must be an object, got undefined'],
    ['mails:delayed', 'registerDispatcher() must be an object, got "mails:delayed" (string)'],
    [{ readyKey: 'r' }, 'registerDispatcher().delayedKey must be the name of a key: 1 to 1024 bytes'],
    [{ delayedKey: 'd' }, "registerDispatcher('d').readyKey must be the name of a key"],
    [{ delayedKey: '', readyKey: 'r' }, 'delayedKey must be the name of a key'],
    [{ delayedKey: 5, readyKey: 'r' }, 'delayedKey must be the name of a key'],
    [{ delayedKey: 'd', readyKey: 'a\ud800' }, 'readyKey must be the name of a key'],
    [{ delayedKey: 'd', readyKey: 'r'.repeat(1_025) }, 'readyKey must be the name of a key'],
    [
      { delayedKey: 'd', readyKey: 'd' },
      "registerDispatcher('d').readyKey must be another key than delayedKey",
    ],
    [{ ...KEYS, name: '' }, 'name must be 1 to 1024 characters'],
    [{ ...KEYS, name: 5 }, 'name must be 1 to 1024 characters'],
    [
      { ...KEYS, batchSize: 0 },
      "registerDispatcher('mails:delayed').batchSize must be an integer from 1 to 1000, got 0",
    ],
    [{ ...KEYS, batchSize: 1_001 }, 'batchSize must be an integer from 1 to 1000'],
    [{ ...KEYS, batchSize: '10' }, 'batchSize must be an integer from 1 to 1000'],
    [{ ...KEYS, unit: 'seconds' }, "unit must be one of 's', 'ms'"],
    [{ ...KEYS, pollInterval: 1 }, 'pollInterval must be a duration from 10 ms'],
    [{ ...KEYS, pollInterval: 'often' }, 'pollInterval must be a duration'],
    [{ ...KEYS, maxReady: 0 }, 'maxReady must be an integer from 1'],
    [
      { ...KEYS, batchsize: 5 },
      "registerDispatcher('mails:delayed').batchsize is not an option; did you mean batchSize?",
    ],
    [{ delayedKey: '{shop:mails}:delayed', readyKey: 'r' }, 'delayedKey must be a key of your own, but'],
    [{ delayedKey: 'd', readyKey: '{shop}:processes' }, 'readyKey must be a key of your own, but'],
  ])('refuses %j with a message', async (options, words) => {
    expect(await faultsOf(options)).toContainEqual(expect.stringContaining(words));
  });

  it('refuses one name with different options, also in one call', async () => {
    expect(await faultsOf({ ...KEYS }, { ...KEYS, batchSize: 5 })).toEqual([
      "the dispatcher 'mails:delayed' is registered twice with different options; give one of them another name",
    ]);
  });

  it('accepts names that mean something in JavaScript', async () => {
    const { app, init } = await compileApp({
      imports: [
        QueueModule.forRoot(),
        QueueModule.registerDispatcher({
          name: '__proto__',
          delayedKey: 'constructor',
          readyKey: '__proto__',
        }),
      ],
    });
    await init();
    expect(app.get<Dispatcher>(getDispatcherToken('__proto__')).delayedKey).toBe('constructor');
  });
});
