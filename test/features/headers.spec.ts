import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { InvalidOptionError } from '#lib/errors.js';
import { UnrecoverableError, type Job, type JobEvent } from '#lib/index.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const HEADERS = {
  'x-tenant': 'ä "quoted"\nline',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};

const refusalOf = (call: Promise<unknown>): Promise<Error> =>
  call.then(
    () => expect.fail('it was not refused'),
    (error: Error) => error,
  );

describe('headers of a job', () => {
  it('are in the handler, in every attempt, and in snapshots, with other options and without', async () => {
    const seen: unknown[] = [];
    const handlers = {
      '*': ({ headers, attempt }: Job) => {
        seen.push(headers);
        if (attempt === 1) throw new Error('once more');
        throw new UnrecoverableError('enough');
      },
    };
    const { queue, ended } = await bootQueue(redis, { handlers });
    const one = await queue.add('one', 1, { headers: HEADERS, backoff: '1ms' });
    const [two] = await queue.addBulk([
      {
        name: 'two',
        data: 2,
        options: { id: 'two', headers: HEADERS, backoff: '1ms', delay: '5ms', priority: 3 },
      },
    ]);
    const { id: three } = await queue.add('three', 3, { backoff: '1ms' });
    for (const id of [one.id, two!.id, three]) await ended(id);
    expect(seen.filter((headers) => JSON.stringify(headers) === JSON.stringify(HEADERS))).toHaveLength(4);
    expect(seen.filter((headers) => JSON.stringify(headers) === '{}')).toHaveLength(2);
    expect(await queue.get('two')).toMatchObject({ headers: HEADERS, priority: 3 });
    expect((await queue.get(three))!.headers).toEqual({});
    expect((await queue.get(one.id))!.headers).toEqual(HEADERS);
  });

  it('stay when the job is changed, retried with other data, and run once more', async () => {
    const { queue } = await bootQueue(redis);
    await queue.add('job', 1, { id: 'a', headers: HEADERS, delay: '1h' });
    await queue.update('a', { data: 2, priority: 9, delay: '2h' });
    expect(await queue.get('a')).toMatchObject({ headers: HEADERS, data: 2, priority: 9 });
    await queue.cancel('a');
    await queue.add('job', 1, { id: 'b', headers: HEADERS, retention: { cancelled: '1h' } });
    await queue.cancel('b');
    await queue.retry('b');
    expect(await queue.get('b')).toMatchObject({ headers: HEADERS, state: 'waiting' });
  });

  it('are in each job of a schedule', async () => {
    const seen: unknown[] = [];
    const { queue, said } = await bootQueue(redis, {
      handlers: { '*': ({ headers }) => void seen.push(headers) },
    });
    await queue.schedules.upsert(
      'tick',
      { every: '1h', immediately: true },
      { name: 'job', options: { headers: HEADERS } },
    );
    await said.take(1, ({ type }) => type === 'completed', PATIENT);
    expect(seen).toEqual([HEADERS]);
  });

  it('reach @OnJob listeners', async () => {
    const heard: JobEvent['job']['headers'][] = [];
    @Injectable()
    @Processor('work')
    class Listening {
      @OnJob('completed')
      completed({ job }: JobEvent) {
        heard.push(job.headers);
      }
    }
    const { queue, runtime } = await bootQueue(redis, { handlers: { '*': () => 1 }, providers: [Listening] });
    await queue.addAndWait('job', 1, { headers: HEADERS });
    await runtime.stop();
    expect(heard).toEqual([HEADERS]);
  });
});

describe('forRoot({ headers })', () => {
  it('is called in the context of each add; headers of the job win', async () => {
    const requests = new AsyncLocalStorage<string>();
    const asked: unknown[] = [];
    const { queue } = await bootQueue(redis, {
      root: {
        headers: (job) => {
          asked.push(job);
          const request = requests.getStore();
          return request === undefined ? undefined : { request, by: 'module' };
        },
      },
    });
    await requests.run('r1', () => queue.add('one', 1, { id: '1', headers: { by: 'job' } }));
    await requests.run('r2', () => queue.addBulk([{ name: 'two', data: 1, options: { id: '2' } }]));
    await queue.add('three', 1, { id: '3' });
    const headersOf = async (id: string) => (await queue.get(id))!.headers;
    expect(await headersOf('1')).toEqual({ request: 'r1', by: 'job' });
    expect(await headersOf('2')).toEqual({ request: 'r2', by: 'module' });
    expect(await headersOf('3')).toEqual({});
    expect(asked).toEqual(['one', 'two', 'three'].map((name) => ({ queue: 'work', name })));
  });

  it('fails the add with its error, or with one about what it returned', async () => {
    let returns: () => unknown = () => {
      throw new Error('no request');
    };
    const { queue } = await bootQueue(redis, { root: { headers: (() => returns()) as never } });
    await expect(queue.add('job', 1)).rejects.toThrow('no request');
    returns = () => ({ tenant: 7 });
    const error = await refusalOf(queue.add('job', 1));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toContain('forRoot().headers()["tenant"] must be a string, got 7');
    expect((await queue.counts()).waiting).toBe(0);
  });
});

describe('headers that cannot be stored', () => {
  it.each([
    ['no object', 'a=b', /headers must be a plain object with strings/],
    ['a Map', new Map([['a', 'b']]), /headers must be a plain object with strings/],
    ['the Headers of fetch', new Headers({ a: 'b' }), /headers must be a plain object with strings/],
    ['a number', { a: 1 }, /headers\["a"\] must be a string/],
    ['a name with a space', { 'a b': '1' }, /headers must be an object with names as in HTTP/],
    [
      'too many',
      Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`h${i}`, ''])),
      /at most 64 headers/,
    ],
    ['too many bytes', { a: 'ä'.repeat(4_096) }, /at most 8192 bytes/],
  ])('are refused: %s', async (_, headers, message) => {
    const { queue } = await bootQueue(redis);
    const error = await refusalOf(queue.add('job', 1, { headers: headers as never }));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toMatch(message);
    expect((await queue.counts()).waiting).toBe(0);
  });
});
