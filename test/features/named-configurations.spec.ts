import type { ModuleMetadata } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import type { Job } from '#lib/job/job.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootApp, type BootedApp } from '../support/app.js';
import { Logs, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { collect, latch, until } from '../support/wait.js';
import { bootFaults } from './fakes.js';

const redis = useRedis();
const server = useServer({ args: KEEPING });

interface Two extends BootedApp {
  readonly here: Queue;
  readonly there: Queue;
  readonly ran: readonly string[];
  readonly logs: Logs;
}

/**
 * An application with the queue `here` on the shared server and `there` on the server of this spec, and workers for
 * both.
 */
async function bootTwo(
  more: { handler?: (job: Job) => unknown; there?: ModuleMetadata['imports'] } = {},
): Promise<Two> {
  const ran: string[] = [];
  const logs = new Logs();
  const handler = (job: Job) => {
    ran.push(`${job.queue}/${job.name}`);
    return more.handler?.(job);
  };
  const app = await bootApp({
    imports: [
      QueueModule.forRoot({
        connection: redis.url,
        prefix: redis.prefix,
        shutdown: { timeout: '3s', grace: '100ms' },
      }),
      ...(more.there ?? [QueueModule.forRoot('other', { connection: server.url, prefix: redis.prefix })]),
      QueueModule.registerQueue({ name: 'here' }, { name: 'there', configKey: 'other' }),
    ],
    providers: [processorOf('here', { '*': handler }), processorOf('there', { '*': handler })],
    logger: logs,
  });
  const queueOf = (name: string) => app.get<Queue>(getQueueToken(name));
  return { ...app, here: queueOf('here'), there: queueOf('there'), ran, logs };
}

describe('a configuration with a key', () => {
  it('has its queues in its own Redis, in one application with the others', async () => {
    const app = await bootTwo();
    const events = app.get(QueueEvents);
    const said = collect(events.all());
    await events.ready();

    expect(await app.here.addAndWait('one', null)).toBeUndefined();
    await app.there.add('two', null, { id: 'kept', retention: '1m' });
    await said.first((event) => event.type === 'completed' && event.queue === 'there', PATIENT);

    expect(app.ran).toEqual(['here/one', 'there/two']);
    expect(await app.there.get('kept')).toMatchObject({ state: 'completed' });
    expect((await redis.keys()).join()).toContain(`{${redis.prefix}:here}`);
    expect((await redis.keys()).join()).not.toContain(`{${redis.prefix}:there}`);
    const queues = await app.get(QueueInspector).queues();
    expect(queues.map(({ name }) => name)).toEqual(['here', 'there']);
    await app.close();
  });

  it('may be in memory, beside others in Redis', async () => {
    const app = await bootTwo({ there: [QueueModule.forRoot('other', { connection: 'memory' })] });
    const events = app.get(QueueEvents);
    const said = collect(events.all());
    await events.ready();
    expect(await app.here.addAndWait('one', null)).toBeUndefined();
    await app.there.add('two', null, { id: 'kept', retention: '1m' });
    await said.first((event) => event.type === 'completed' && event.queue === 'there', PATIENT);
    expect(await app.there.get('kept')).toMatchObject({ state: 'completed' });
    expect((await redis.keys()).join()).not.toContain(`{${redis.prefix}:there}`);
    await app.there.add('three', null, { delay: '1h' });
    await app.here.add('three', null, { delay: '1h' });
    await app.close();
    expect(app.logs.complaints.filter((text) => text.includes('memory'))).toEqual([
      expect.stringMatching(/^jobs of queue 'there' live in the memory of this process: /),
      "1 job that has not run to the end is lost with the memory of this process: 'there' 1",
    ]);
  });

  it('is one worker process with the others, in each of the stores', async () => {
    const app = await bootTwo();
    const workers = await until(async () => {
      const all = await app.get(QueueInspector).workers();
      return all[0]?.pools.length === 2 && all;
    }, PATIENT);
    expect(workers).toHaveLength(1);
    expect(workers[0]!.pools.map(({ queues }) => queues)).toEqual([['here'], ['there']]);
    await app.close();
  });

  it('has schedules, cancelling, statistics and dead letters of its own', async () => {
    const started = latch('the run');
    const app = await bootTwo({
      handler: ({ name, signal }) => {
        if (name === 'dies') throw new Error('no');
        if (name !== 'long') return undefined;
        started.open();
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        );
      },
    });
    await app.there.schedules.upsert('tick', { every: '1h' }, { name: 'tick' });
    expect(await app.there.schedules.runNow('tick')).toBeDefined();
    await until(() => app.ran.includes('there/tick'), PATIENT);

    const { id } = await app.there.add('long', null);
    await started.promise;
    expect(await app.there.cancel(id, 'enough')).toBe('signalled');
    await app.there.add('dies', null, { attempts: 1 });
    await until(async () => (await app.there.dead.list()).jobs.length === 1, PATIENT);
    await until(async () => (await app.there.stats()).total.cancelled === 1, PATIENT);
    expect((await app.here.stats()).total).toMatchObject({ dead: 0, cancelled: 0 });
    await app.there.schedules.remove('tick');
    await app.close();
  });

  it('does not keep the others when its Redis goes away, and goes on when that is back', async () => {
    const app = await bootTwo();
    const events = app.get(QueueEvents);
    const said = collect(events.all());
    await events.ready();
    await app.there.addAndWait('before', null);

    await server.kill9();
    await app.logs.complaint(/command connection to Redis of forRoot\('other'\) is down/);
    for (const n of [1, 2, 3]) await app.here.addAndWait(`meanwhile-${n}`, null, { waitTimeout: '15s' });
    await said.first((event) => event.type === 'completed' && event.name === 'meanwhile-3', PATIENT);

    await server.restart();
    await until(() => app.there.add('after', null).then(() => true), PATIENT);
    await until(() => app.ran.includes('there/after'), PATIENT);
    expect(app.ran.filter((run) => run.startsWith('here/'))).toHaveLength(3);
    await app.close();
  });

  it('may be made by a factory', async () => {
    const there = [
      QueueModule.forRootAsync('other', {
        useFactory: async () => ({ connection: server.url, prefix: redis.prefix }),
      }),
    ];
    const app = await bootTwo({ there });
    await app.there.addAndWait('one', null);
    expect((await redis.keys()).join()).not.toContain(`{${redis.prefix}:there}`);
    await app.close();
  });

  it('may be the only one', async () => {
    const ran = latch('the run');
    const { get, close } = await bootApp({
      imports: [
        QueueModule.forRoot('only', { connection: redis.url, prefix: redis.prefix }),
        QueueModule.registerQueue({ name: 'work', configKey: 'only' }),
      ],
      providers: [processorOf('work', { '*': () => ran.open() })],
    });
    await get<Queue>(getQueueToken('work')).add('one', null);
    await ran.promise;
    expect((await redis.keys()).join()).toContain(`{${redis.prefix}:work}`);
    await close();
  });
});

describe('conflicts are reported at the start:', () => {
  const main = () => QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix });

  it('a key that is not defined', async () => {
    expect(
      await bootFaults({
        imports: [main(), QueueModule.registerQueue({ name: 'work', configKey: 'reports' })],
      }),
    ).toEqual([
      'registerQueue(\'work\').configKey: there is no forRoot("reports", …); import it once, in the root module',
    ]);
  });

  it('a queue without a key if every configuration has one', async () => {
    const imports = [QueueModule.forRoot('only', {}), QueueModule.registerQueue({ name: 'work' })];
    expect(await bootFaults({ imports })).toEqual([
      "registerQueue('work') names no configKey, and there is no forRoot() without a key; name one, or add it",
    ]);
  });

  it('the same key twice', async () => {
    expect(
      await bootFaults({ imports: [main(), QueueModule.forRoot('a', {}), QueueModule.forRoot('a', {})] }),
    ).toEqual([
      "QueueModule.forRoot('a') or forRootAsync('a') is imported twice; import it once, in the root module",
    ]);
  });

  it('one queue in two configurations', async () => {
    const [fault] = await bootFaults({
      imports: [
        main(),
        QueueModule.forRoot('a', {}),
        QueueModule.forRoot('b', {}),
        QueueModule.registerQueue({ name: 'work', configKey: 'a' }),
        QueueModule.registerQueue({ name: 'work', configKey: 'b' }),
      ],
    });
    expect(fault).toContain("{ configKey: 'a' } and { configKey: 'b' }");
  });

  it.each([
    [{ role: 'worker' }, "forRoot('a').role must be left out, because it applies to the whole process"],
    [{ connection: 7 }, "forRoot('a').connection must be"],
    [{ colour: 'red' }, "forRoot('a').colour"],
  ])('options %j', async (given, said) => {
    const imports = [
      main(),
      QueueModule.forRootAsync('a', { useFactory: () => given as never }),
      QueueModule.registerQueue({ name: 'work', configKey: 'a' }),
    ];
    expect((await bootFaults({ imports })).join('\n')).toContain(said);
  });

  it.each([['a key'], [''], [7]])('the key %j', async (key) => {
    const imports = [
      main(),
      QueueModule.forRoot(key as never, {}),
      QueueModule.registerQueue({ name: 'work', configKey: key as never }),
    ];
    expect((await bootFaults({ imports })).join('\n')).toMatch(/key of forRoot|there is no forRoot/);
  });
});
