import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { UnrecoverableError } from '#lib/errors.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { gated, oneOfEach } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { runOn } from './support.js';

const redis = useRedis();
const run = (...words: string[]) => runOn(redis, ...words);
const booted = () => bootQueue(redis, { watch: false });

it('retry --data runs a dead job again with other data', async () => {
  const { queue } = await bootQueue(redis, {
    watch: false,
    handlers: {
      mail: ({ data }) => {
        if (!(data as { to: string }).to.includes('@')) throw new UnrecoverableError('no address');
        return data;
      },
    },
    queue: { defaults: { retention: '1h' } },
  });
  for (const id of ['a', 'b']) await queue.add('mail', { to: 'ada' }, { id });
  await until(async () => (await queue.counts()).dead === 2, PATIENT);
  const data = '{"to":"ada@example.org"}';
  expect((await run('retry', 'work', 'a', 'b', '-d', data)).err).toContain('give one id');
  expect((await run('retry', 'work', 'a', '-d', '{to')).code).toBe(2);
  expect((await run('retry', 'work', 'a', '-d', data)).out).toBe('a retried\n');
  await until(async () => (await queue.get('a'))?.state === 'completed', PATIENT);
  expect((await queue.get('a'))!.result).toEqual({ to: 'ada@example.org' });
  expect((await queue.get('b'))!.state).toBe('dead');
});

it('retry runs any job again that has ended, as the dashboard does', async () => {
  const runs: string[] = [];
  const { queue } = await bootQueue(redis, {
    watch: false,
    handlers: { x: ({ id }) => void runs.push(id) },
    queue: { defaults: { retention: '1h' } },
  });
  await queue.add('x', null, { id: 'a' });
  const completed = async () => (await queue.get('a'))?.state === 'completed';
  await until(completed, PATIENT);
  expect(await run('retry', 'work', 'a')).toEqual({ code: 0, out: 'a retried\n', err: '' });
  await until(async () => runs.length === 2 && (await completed()), PATIENT);
  await queue.add('x', null, { id: 'b', delay: '1h' });
  expect(await run('retry', 'work', 'b')).toMatchObject({
    code: 1,
    err: 'godwit: job "b" in queue \'work\' is delayed; only a job that has ended is run again\n',
  });
});

it('cancel tells a job that has ended from one that does not exist', async () => {
  const { queue } = await booted();
  await queue.add('x', 1, { id: 'a', delay: '1h', retention: { cancelled: '1h' } });
  expect(await run('cancel', 'work', 'a')).toMatchObject({ code: 0, out: 'a cancelled\n' });
  const again = await run('cancel', 'work', 'a', 'b');
  expect(again).toMatchObject({ code: 3, out: 'a already cancelled\nb not-found\n' });
});

it('stores the digits of numbers that JavaScript would round', async () => {
  const { queue, app } = await booted();
  const stored = async (id: string) =>
    (await app.get<QueueEngine>(QUEUE_ENGINE).admin.get('work', id))!.body.split('\n').at(-1);
  const long = '{"id":12345678901234567890,"part":0.1234567890123456789}';
  await run('add', 'work', 'mail', '--new', '--id', 'a', '-d', long.replaceAll(',', ' ,\n'));
  expect(await stored('a')).toBe(long);
  const shown = await run('job', 'work', 'a');
  expect(shown.out).toContain(` ${long}\n`);
  // A job without headers has no line for them.
  expect(shown.out).not.toContain('headers');
  expect((await run('job', 'work', 'a', '--json')).out).toContain(`  "data": ${long},\n`);
  const listed = (await run('jobs', 'work', '--json')).out;
  expect(listed).toContain(`"data": ${long},\n`);
  expect(JSON.parse(listed).jobs).toMatchObject([{ id: 'a', data: { part: 0.123_456_789_012_345_68 } }]);
  await run('update', 'work', 'a', '-d', '12345678901234567891');
  expect(await stored('a')).toBe('12345678901234567891');
  // Too deep for digits, and too deep for any job.
  await run('add', 'work', 'mail', '--id', 'b', '-d', `${'['.repeat(300)}1${']'.repeat(300)}`);
  expect(await stored('b')).toMatch(/^\[{300}1\]{300}$/);
  const deep = await run('add', 'work', 'mail', '-d', `${'['.repeat(5_000)}${']'.repeat(5_000)}`);
  expect(deep).toMatchObject({ code: 2, err: expect.stringContaining('nested deeper than 1,000') });
  expect((await queue.counts()).waiting).toBe(2);
});

it('add takes every option of a job as JSON, and says what became of the job', async () => {
  const { queue } = await booted();
  await queue.add('mail', null, { id: 'first' });
  const add = (options: string, ...words: string[]) =>
    run('add', 'work', 'mail', '--options', options, ...words);
  const key = (more = '') => `{"unique":{"key":"k"${more}}}`;
  expect(await add('{"lifo":true,"id":"last","attempts":9}', '--attempts', '2')).toMatchObject({
    out: 'job last added\n',
  });
  const { jobs } = await queue.jobs({ state: 'waiting' });
  expect(jobs.map(({ id }) => id)).toEqual(['last', 'first']);
  expect(jobs[0]).toMatchObject({ attempts: 2 });
  const [, a] = /^job (\w+) added\n$/.exec((await add(key())).out)!;
  expect((await add(key())).out).toBe(`job ${a} was there already\n`);
  const replaced = await add(key(',"onDuplicate":"replace"'), '-d', '7');
  expect(replaced.out).toBe(`job ${a} was there already, and has this data now\n`);
  expect((await queue.get(a!))!.data).toBe(7);
  const list = '{"aggregate":{"key":"k","maxSize":5,"maxDelay":"1m"}}';
  await add(list);
  expect((await add(list)).out).toMatch(/^added to job \w+, which has 2 items now\n$/);
  for (const [options, said] of [
    ['[]', 'must be a JSON object, such as {"lifo":true}'],
    ['{', 'is not valid JSON'],
    ['{"lif":true}', '.lif is not an option; did you mean lifo?'],
    ['{"unique":{"key":""}}', '.unique.key must be a string of 1 to 256 bytes'],
  ] as const)
    expect(await add(options)).toMatchObject({
      code: 2,
      err: expect.stringContaining(`--options${said[0] === '.' ? '' : ' '}${said}`),
    });
});

it('update changes data, time and priority of a job, with the actor on record', async () => {
  const { queue } = await booted();
  await queue.add('mail', { to: 'ada' }, { id: 'a', delay: '1h' });
  expect((await run('update', 'work', 'a')).code).toBe(2);
  expect((await run('update', 'work', 'a', '--delay', '5')).code).toBe(2);
  expect((await run('update', 'work', 'nope', '--priority', '3')).code).toBe(3);
  const changes = ['-d', '{"to":"eve"}', '--delay', '0', '--priority', '7'];
  expect(await run('update', 'work', 'a', ...changes)).toMatchObject({ out: 'a updated: it is waiting\n' });
  expect(await queue.get('a')).toMatchObject({ state: 'waiting', data: { to: 'eve' }, priority: 7 });
  const { actions } = JSON.parse((await run('actions', 'work', '--json')).out);
  expect(actions.at(0)).toMatchObject({ action: 'job.update', target: 'a', result: 'ok' });
});

it('jobs finds one among more than a call looks at, and does not claim that none match', async () => {
  const { queue } = await booted();
  const items = Array.from({ length: 12_000 }, (_, order) => ({ name: 'mail', data: { order } }));
  for (let at = 0; at < items.length; at += 1_000) await queue.addBulk(items.slice(at, at + 1_000));
  const find = async (order: number) =>
    JSON.parse((await run('jobs', 'work', '--where', `order=${order}`, '--limit', '1', '--json')).out);
  expect((await find(11_500)).jobs).toMatchObject([{ data: { order: 11_500 } }]);
  expect(await find(99_999)).toMatchObject({ jobs: [], cursor: null, examined: 12_000 });
  expect((await run('jobs', 'work', '--where', 'order=99999')).out).toBe('no waiting jobs match\n');
  expect((await run('jobs', 'work', 'dead')).out).toBe('no dead jobs\n');
});

it('jobs filters by priority, and running jobs by host, process and worker', async () => {
  const { gate, handlers } = gated();
  const { queue } = await bootQueue(redis, { watch: false, handlers });
  await oneOfEach(queue);
  const ids = async (...words: string[]) =>
    JSON.parse((await run('jobs', 'work', ...words, '--json')).out).jobs.map(({ id }: { id: string }) => id);
  expect(await ids('--priority', '>2')).toEqual(['ranked']);
  expect(await ids('delayed', '--priority', '1-2')).toEqual(['delayed']);
  expect(await ids('delayed', '--priority', '0')).toEqual([]);
  expect(await run('jobs', 'work', '--priority', 'high')).toMatchObject({
    code: 2,
    err: 'godwit: --priority must be a priority from 0 to 2097151, such as 5, >5, <=5 or 1-5, got "high" (string)\n',
  });
  // The process reports its workers a moment after it has started.
  await until(async () => (await ids('--worker', hostname())).length === 1, PATIENT);
  expect(await ids('active', '--worker', `${hostname()}:${process.pid}`)).toEqual(['active']);
  expect(await ids('--worker', `${hostname()}:1`)).toEqual([]);
  expect(await run('jobs', 'work', 'dead', '--worker', hostname())).toMatchObject({
    code: 2,
    err: expect.stringContaining("--worker must be left out unless state is 'active'"),
  });
  gate.open();
});

it('dead remove says that more jobs may match than it has removed', async () => {
  const { handlers } = gated();
  const { queue } = await bootQueue(redis, { watch: false, handlers });
  await queue.addBulk([1, 2, 3].map((data) => ({ name: 'die', data, options: { attempts: 1 } })));
  await until(async () => (await queue.counts()).dead === 3, PATIENT);
  const remove = async (...words: string[]) => (await run('dead', 'work', 'remove', '-y', ...words)).out;
  expect(await remove('--limit', '2')).toBe('2 removed; there may be more: see --limit\n');
  expect(await remove()).toBe('1 removed\n');
});
