import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { InvalidOptionError, InvalidQueueNameError } from '#lib/errors.js';
import { createProducer } from '#lib/subpaths/standalone.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { ROOT } from '../support/sources.js';
import { until } from '../support/wait.js';

const redis = useRedis();

/** Runs a program in its own process, which must exit by itself. Returns the JSON that it prints. */
async function program(type: 'module' | 'commonjs', code: string): Promise<any> {
  const head =
    type === 'module'
      ? "import { createProducer } from 'godwit/producer'; import { createRequire } from 'node:module'; const require = createRequire(process.cwd() + '/x.js');"
      : "const { createProducer } = require('godwit/producer');";
  const body = `${head}\nconst connection = ${JSON.stringify(redis.url)}, prefix = ${JSON.stringify(redis.prefix)};\n${code}`;
  const args = [`--input-type=${type}`, '-e', body];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, timeout: 20_000 });
  return JSON.parse(stdout);
}

const LOADED = `Object.keys(require.cache).map((file) => file.replace(/^.*node_modules\\//, '').split(/[/\\\\]dist[/\\\\]/).at(-1))`;

describe('createProducer', () => {
  it.each(['module', 'commonjs'] as const)(
    'adds jobs from a program of type %s, which a worker of an application runs; the program exits by itself',
    async (type) => {
      const { said } = await bootQueue(redis, { handlers: { '*': (job) => job.data } });
      const ids = await program(
        type,
        `(async () => {
          const producer = createProducer({ connection, prefix });
          const one = await producer.add('work', 'a', 1);
          const two = await producer.addBulk('work', [{ name: 'b', data: 2 }, { name: 'c', data: 3 }]);
          const three = await producer.queue('work').add('d', 4);
          await producer.close();
          console.log(JSON.stringify([one, ...two, three].map(({ id }) => id)));
        })();`,
      );
      const done = () => said.values.filter((e) => e.type === 'completed' && ids.includes(e.jobId));
      await until(() => done().length === 4, PATIENT);
      expect(ids).toHaveLength(4);
    },
  );

  it('has one connection and no thread, and loads neither Nest nor RxJS nor many files', async () => {
    const { files, threads, clients, nest } = await program(
      'commonjs',
      `(async () => {
        const producer = createProducer({ connection, prefix });
        await producer.add('work', 'a', 1);
        const clients = process.getActiveResourcesInfo().filter((one) => one === 'TCPSocketWrap').length;
        const files = ${LOADED};
        const threads = process.getActiveResourcesInfo().filter((one) => one === 'MessagePort').length;
        await producer.close();
        const nest = files.filter((file) => /nestjs|rxjs|reflect-metadata|worker_threads/.test(file));
        console.log(JSON.stringify({ files: files.filter((file) => !file.startsWith('ioredis')).length, threads, clients, nest }));
      })();`,
    );
    expect(nest).toEqual([]);
    expect(threads).toBe(0);
    expect(clients).toBe(1);
    // Of this library and of what it needs beside ioredis: it takes about 40 ms to load them.
    expect(files).toBeLessThan(180);
  });

  it('does not keep the process alive after it is closed, even if no sentinel can be reached', async () => {
    const { ms } = await program(
      'commonjs',
      `(async () => {
        const sentinels = [{ host: '127.0.0.1', port: 1 }];
        const producer = createProducer({ connection: { name: 'main', sentinels }, prefix, enqueueTimeout: '300ms' });
        const failed = await producer.add('work', 'a', 1).then(() => false, () => true);
        await producer.close();
        const closedAt = Date.now();
        process.on('exit', () => failed && console.log(JSON.stringify({ ms: Date.now() - closedAt })));
      })();`,
    );
    expect(ms).toBeLessThan(1_500);
  });

  it('waits for results, and only then reads events', async () => {
    await bootQueue(redis, { handlers: { '*': (job) => job.data + 1 }, watch: false });
    const producer = createProducer({ connection: redis.url, prefix: redis.prefix });
    expect(await producer.addAndWait('work', 'a', 1)).toBe(2);
    expect(await producer.queue('work').addAndWait('a', 2)).toBe(3);
    await producer.close();
    await producer.close();
    await expect(producer.add('work', 'a', 1)).rejects.toThrow(/closed|stopped|shut|unavailable/i);
  });

  it('is closed by await using', async () => {
    const producer = createProducer({ connection: redis.url, prefix: redis.prefix });
    await producer.add('work', 'a', 1);
    await producer[Symbol.asyncDispose]();
    await expect(producer.add('work', 'a', 1)).rejects.toThrow(/closed|stopped|shut|unavailable/i);
  });

  it.each([
    [{ conection: 'x' }, 'createProducer().conection is not an option; did you mean connection?'],
    [{ role: 'worker' }, 'createProducer().role is not an option; the options are connection, prefix'],
    [{ connection: 'memory' }, 'createProducer().connection must be the URL or options of a Redis'],
    [{ queues: 'work' }, 'createProducer().queues must be a list of'],
    [
      { queues: [{ name: 'work', defaults: { atempts: 1 } }] },
      'createProducer().queues[0].defaults.atempts is not an option',
    ],
  ])('refuses %j', (options, message) => {
    const make = () => createProducer(options as never);
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(message);
  });

  it('refuses an invalid name, and an unknown name of a backoff', async () => {
    const producer = createProducer({
      connection: redis.url,
      queues: [{ name: 'crawl', backoffs: { polite: 0 } }],
    });
    await expect(producer.add('a b', 'x', 1)).rejects.toThrow(InvalidQueueNameError);
    await expect(producer.add('crawl', 'x', 1, { backoff: 'rude' })).rejects.toThrow('named backoffs polite');
    await producer.close();
  });
});
