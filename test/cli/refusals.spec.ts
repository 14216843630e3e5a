import { expect, it } from 'vitest';
import { bootQueue } from '../support/queue-app.js';
import { gated, oneOfEach } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { godwit, runOn } from './support.js';

const redis = useRedis();

const run = (...words: string[]) => runOn(redis, ...words);

it('a duration needs a unit, and nothing is deleted without one', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null, { id: 'a' });
  for (const [words, what] of [
    [['clean', 'work', 'waiting', '--older-than', '2'], '--older-than'],
    [['clean', 'work', 'waiting', '--newer-than', '1.5'], '--newer-than'],
    [['dead', 'work', 'remove', '--older-than', '2'], '--older-than'],
    [['cancel', 'work', '--newer-than', '2'], '--newer-than'],
    [['promote', 'work', '--older-than', 'soon'], '--older-than'],
    [['add', 'work', 'x', '--delay', '10'], '--delay'],
    [['add', 'work', 'x', '--wait', '--timeout', '10'], '--timeout'],
    [['limits', 'work', 'hold', '30'], 'the time of limits hold'],
  ] as const) {
    const { code, err } = await run(...words, '--yes');
    expect([words, code]).toEqual([words, 2]);
    expect(err).toContain(`${what} must be a duration with a unit, such as 10m or 2h, got "`);
  }
  expect(await queue.counts()).toMatchObject({ waiting: 1, delayed: 0 });
  expect((await run('add', 'work', 'x', '--delay', '0')).code).toBe(0);
  expect((await run('clean', 'work', 'waiting', '--newer-than', '1.5h', '--yes')).out).toBe('2 removed\n');
});

it('add refuses a queue that does not exist, unless with --new', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null);
  expect(await run('add', 'wrok', 'x')).toEqual({
    code: 3,
    out: '',
    err: 'godwit: there is no queue "wrok" with this prefix; did you mean work? (--new creates it)\n',
  });
  expect(await run('jobs', 'wrok', '--json')).toMatchObject({
    code: 3,
    err: expect.stringMatching(/^\{"code":"GODWIT_UNKNOWN_QUEUE","message":"there is no queue .*"\}\n$/),
  });
  expect((await run('jobs', 'wrok')).err).toBe(
    'godwit: there is no queue "wrok" with this prefix; did you mean work?\n',
  );
  expect((await run('add', 'exports', 'x')).err).toBe(
    'godwit: there is no queue "exports" with this prefix; godwit queues lists them (--new creates it)\n',
  );
  expect((await run('queues')).out).not.toMatch(/wrok|exports/);
  expect((await run('add', 'exports', 'x', '--new')).code).toBe(0);
  expect((await run('add', 'exports', 'x')).code).toBe(0);
});

it('limits refuses a shared limit that does not exist, unless with --new', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null);
  const set = ['limits', 'work', 'set', '--concurrency', '2', '--shared'];
  expect(await run(...set, 'openai')).toMatchObject({
    code: 3,
    err: 'godwit: there is no shared limit "openai"; there are none (set --new creates it)\n',
  });
  expect((await run(...set, 'openai', '--new')).code).toBe(0);
  expect((await run(...set, 'openai')).code).toBe(0);
  for (const act of ['clear', 'release'])
    expect(await run('limits', 'work', act, '--shared', 'openia')).toMatchObject({
      code: 3,
      err: expect.stringContaining('"openia"; there are openai; did you mean openai? ('),
    });
  expect((await run('limits', 'work', '--json')).out).not.toContain('openia');
});

it('stats, workers and running refuse a queue that does not exist', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null);
  for (const command of ['stats', 'workers', 'running']) {
    expect((await run(command, 'work')).code).toBe(0);
    expect(await run(command, 'wrok')).toEqual({
      code: 3,
      out: '',
      err: 'godwit: there is no queue "wrok" with this prefix; did you mean work?\n',
    });
  }
});

it('limits refuses an option or a time that it would ignore', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null);
  for (const [words, why] of [
    [['--rate', '5/s'], '--rate is for limits set'],
    [['--name', 'x'], '--name is for a change'],
    [['clear', '--concurrency', '3'], '--concurrency is for limits set'],
    [['set', '5s', '--concurrency', '3'], 'limits set: unexpected argument "5s"'],
    [['release', '5s'], 'limits release: unexpected argument "5s"'],
  ] as const) {
    const { code, err } = await run('limits', 'work', ...words);
    expect([words, code, err]).toEqual([words, 2, expect.stringContaining(why)]);
  }
  expect(await queue.limits.list()).toMatchObject([{ of: 'queue', concurrency: null, isLive: false }]);
});

it('schedules and job name a queue that does not exist', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null);
  const unknown = { code: 3, err: expect.stringContaining('there is no queue "wrok" with this prefix') };
  expect(await run('schedules', 'wrok')).toMatchObject(unknown);
  expect(await run('schedules', 'wrok', 'pause', 'daily')).toMatchObject(unknown);
  expect(await run('job', 'wrok', 'a')).toMatchObject(unknown);
  expect(await run('job', 'work', 'a')).toMatchObject({ code: 3, out: 'queue work has no job a\n' });
});

it('a wrong value is refused under the name of its option', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.add('x', null, { id: 'a' });
  for (const [words, why] of [
    [['jobs', 'work', '--limit', '0'], '--limit must be an integer from 1 to 1000, got 0'],
    [['jobs', 'work', '--cursor', 'x'], '--cursor must be the cursor of a previous page, got "x"'],
    [['stats', 'work', '--days', '91'], '--days must be an integer from 1 to 90, got 91'],
    [['stats', 'work', '--hosts', '--days', '2'], '--days is for stats without --hosts'],
    [['stats', 'work', '--hours', '2'], '--hours is for stats with --hosts'],
    [['stats', 'work', '--hosts', '--hours', '73'], '--hours must be an integer from 1 to 72, got 73'],
    [['dead', 'work', '--reason', 'sad'], "--reason must be one of 'unrecoverable', "],
    [['update', 'work', 'a', '--priority', '9999999'], '--priority must be an integer from 0 to 2097151'],
    [['limits', 'work', 'set', '--rate', '0/s'], '--rate must be '],
    [['watch', '--interval', '0'], '--interval must be a whole number from 1 to 86400, got "0"'],
    [['watch', '--interval', '86401'], '--interval must be a whole number from 1 to 86400, got "86401"'],
    [['watch', '--times', '0'], '--times must be a whole number from 1 to 999999999, got "0"'],
    [['top', '--interval', '0'], '--interval must be a whole number from 1 to 86400, got "0"'],
    [['exporter', '--port', '65536'], '--port must be a whole number from 0 to 65535, got "65536"'],
    [['serve', '--port', '65536'], '--port must be a whole number from 0 to 65535, got "65536"'],
    [['acl', '--redis', '6.2'], '--redis must be a version from 7.0 on, such as 7.2, got "6.2"'],
    [['acl', '--redis', 'new'], '--redis must be a version from 7.0 on, such as 7.2, got "new"'],
  ] as const) {
    const { code, err } = await run(...words);
    expect([words, code, err]).toEqual([words, 2, expect.stringContaining(`godwit: ${why}`)]);
  }
});

it('errors advise what to type, not what to call', async () => {
  const { gate, handlers } = gated();
  const { queue } = await bootQueue(redis, { watch: false, handlers });
  await oneOfEach(queue);
  for (const [words, advice] of [
    [['obliterate', 'work', '--yes'], 'pause the queue and let its runs end, or add --force'],
    [
      ['update', 'work', 'dead', '-d', '2'],
      'godwit retry <queue> <id> -d JSON runs it again with other data',
    ],
    [['schedules', 'work', 'run', 'none'], 'has no schedule "none"; godwit schedules lists them'],
  ] as const)
    expect([words, (await run(...words)).err]).toEqual([words, expect.stringContaining(advice)]);
  gate.open();
});

it('health counts a Redis that does not answer as unhealthy', async () => {
  const away = await godwit(['health', '--json', '-u', 'redis://127.0.0.1:1']).result();
  expect([away.code, JSON.parse(away.out)]).toEqual([
    4,
    { healthy: false, faults: [expect.stringMatching(/no connection to Redis.*127\.0\.0\.1:1/)] },
  ]);
});
