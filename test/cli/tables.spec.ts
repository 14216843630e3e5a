import { hostname } from 'node:os';
import { expect, it, vi } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import { bootQueue, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { runOn } from './support.js';

const redis = useRedis();

const run = (...words: string[]) => runOn(redis, ...words);
const producing = (options: QueueAppOptions = {}) => bootQueue(redis, { watch: false, ...options });

it('schedules shows intervals that are texts and numbers, without rounding', async () => {
  const { queue } = await producing();
  await queue.add('x', null);
  for (const [id, every] of [
    ['text', '1m'],
    ['number', 60_000],
    ['odd', '150m'],
    ['digits', '90000'],
  ] as const)
    await queue.schedules.upsert(id, { every }, { name: 'x' });
  const { out } = await run('schedules');
  for (const line of [
    / text +every 1 m /,
    / number +every 1 m /,
    / odd +every 150 m /,
    / digits +every 90 s /,
  ])
    expect(out).toMatch(line);
});

it('schedules next shows the rule in words, and its next five times, also in its time zone', async () => {
  const { queue } = await producing();
  await queue.schedules.upsert('daily', { cron: '0 7 * * *', tz: 'UTC' }, { name: 'x' });
  await queue.schedules.upsert('twice', { every: '1h', limit: 2 }, { name: 'x' });
  const { code, out } = await run('schedules', 'work', 'next', 'daily');
  expect([code, out.match(/^\d{4}-\d\d-\d\dT07:00:00Z +\d+ [mhd]$/gm)?.length]).toEqual([0, 5]);
  expect(out).toMatch(/^0 7 \* \* \* UTC: every day at 07:00\nNEXT +IN\n/);
  await queue.schedules.upsert('early', { cron: '0 7 * * *', tz: 'Asia/Kolkata' }, { name: 'x' });
  const early = (await run('schedules', 'work', 'next', 'early')).out;
  expect(early).toMatch(/\nNEXT +Asia\/Kolkata +IN\n/);
  expect(early.match(/T01:30:00Z +\d{4}-\d\d-\d\d 07:00:00 /g)).toHaveLength(5);
  const twice = await run('schedules', 'work', 'next', 'twice', '--json');
  expect(JSON.parse(twice.out)).toEqual([expect.any(String), expect.any(String)]);
  expect((await run('schedules', 'work', 'next', 'gone')).code).toBe(3);
});

it('a job shows its most attempts only if it was added with them', async () => {
  const { queue } = await producing({
    handlers: {
      '*': () => {
        throw new Error('no');
      },
    },
    queue: { defaults: { attempts: 4, backoff: 0 } },
  });
  await queue.add('x', null, { id: 'default' });
  await queue.add('x', null, { id: 'own', attempts: 2 });
  await until(async () => (await queue.counts()).dead === 2, PATIENT);
  const { out } = await run('jobs', 'work', '--state', 'dead');
  expect(out).toMatch(/^default +x +4 /m);
  expect(out).toMatch(/^own +x +2\/2 /m);
  const attempts = async (id: string) => {
    const table = await run('job', 'work', id);
    const one = await queue.get(id);
    return [one?.attempt, /^attempts .*$/m.exec(table.out)?.[0]];
  };
  expect(await attempts('default')).toEqual([4, undefined]);
  expect(await attempts('own')).toEqual([2, expect.stringMatching(/^attempts +2$/)]);
  for (const command of [
    ['jobs', 'work', '--state', 'dead'],
    ['dead', 'work'],
  ]) {
    const page = JSON.parse((await run(...command, '--json')).out);
    expect(page.jobs).toHaveLength(2);
    expect(page.jobs).toContainEqual(expect.objectContaining({ id: 'default', attempts: null }));
    expect(page.jobs).toContainEqual(expect.objectContaining({ id: 'own', attempts: 2 }));
  }
});

it('ages are by the clock of Redis, whatever the clock of this machine says', async () => {
  const end = latch('the end of the job');
  const { queue } = await producing({ handlers: { slow: () => end.promise } });
  await queue.as('ada').add('slow', null, { id: 'runs' });
  await queue.add('slow', null, { id: 'later', delay: '3h' });
  await queue.schedules.upsert('s', { every: '2h' }, { name: 'x' });
  await until(async () => JSON.parse((await run('running', '--json')).out).length > 0, PATIENT);
  vi.stubEnv('COLUMNS', '80');
  const now = Date.now;
  vi.spyOn(Date, 'now').mockImplementation(() => now() + 5 * 86_400_000);
  try {
    const shown = [
      ['running'],
      ['workers'],
      ['jobs', 'work', 'delayed'],
      ['actions'],
      ['schedules', 'work', 'next', 's'],
    ];
    for (const words of shown) {
      const { code, out } = await run(...words);
      expect([words[0], code, /(^|\s)-?\d+ d(\s|$)/m.test(out)]).toEqual([words[0], 0, false]);
    }
  } finally {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    end.open();
  }
});

it.each([40, 60, 80])('no table is wider than a terminal of %d columns', async (width) => {
  const end = latch('the end of the job');
  const name = 'a-long-name-of-a-job';
  const { queue } = await producing({
    handlers: {
      [name]: () => {
        throw new UnrecoverableError(`the mailer says no ${'and '.repeat(30)}`);
      },
      slow: () => end.promise,
    },
    queue: { limits: { concurrency: 50, names: { slow: { rate: { max: 100, per: '1h' } } } } },
  });
  await queue.add(name, null, { id: 'an-id-that-is-rather-long-0001' });
  await queue.add('slow', null);
  await queue.schedules.upsert('a-schedule', { cron: '*/5 * * * *', tz: 'Europe/Berlin' }, { name: 'x' });
  await run('pause', 'work');
  await until(async () => (await queue.counts()).dead === 1, PATIENT);
  // The process reports its run a moment later.
  await until(async () => JSON.parse((await run('running', '--json')).out).length > 0, PATIENT);
  vi.stubEnv('COLUMNS', String(width));
  for (const command of [
    ['queues'],
    ['workers'],
    ['running'],
    ['stats', 'work'],
    ['schedules'],
    ['schedules', 'work', 'next', 'a-schedule'],
    ['jobs', 'work', 'dead'],
    ['dead', 'work'],
    ['limits', 'work'],
    ['actions'],
    ['doctor'],
    ['watch', '--times', '1'],
  ]) {
    const { out } = await run(...command);
    expect(out.split('\n').length).toBeGreaterThan(1);
    const long = out.split('\n').filter((line) => line.length > width && !line.startsWith('no room for '));
    expect([command, long]).toEqual([command, []]);
  }
  const { out } = await run('queues');
  expect(out.includes('\nno room for DELAYED')).toBe(width < 70);
  vi.unstubAllEnvs();
  end.open();
});

it.each([true, false])('a search among many jobs says on a terminal how far it is: %s', async (isTTY) => {
  const { queue } = await producing();
  for (let at = 0; at < 3; at++)
    await queue.addBulk(Array.from({ length: 5_000 }, (_, i) => ({ name: 'x', data: at * 5_000 + i })));
  const before = process.stderr.isTTY;
  process.stderr.isTTY = isTTY;
  try {
    const search = ['jobs', 'work', '--contains', 'nothing'];
    const { out, err } = await run(...search);
    expect(out).toBe('no waiting jobs match\n');
    const [start = '', line = '', ...more] = err.split('\r\u001b[K');
    expect([start, /^looked at 1\d,\d{3} jobs, 0 match$/.test(line)]).toEqual(['', isTTY]);
    // The last one removes the line.
    expect(more.at(-1) ?? '').toBe('');
    expect((await run(...search, '--quiet')).err).toBe('');
  } finally {
    process.stderr.isTTY = before;
  }
});

it('stats --hosts shows what ended on each host, and its last minute', async () => {
  const app = await producing({
    root: { history: true },
    handlers: {
      ok: () => undefined,
      bad: () => {
        throw new UnrecoverableError('no');
      },
    },
  });
  await app.queue.addBulk(['ok', 'ok', 'bad'].map((name) => ({ name, data: null })));
  await until(async () => (await app.queue.stats()).total.processed === 2, PATIENT);
  await until(async () => (await app.queue.counts()).dead === 1, PATIENT);
  expect((await run('stats', 'work', '--hosts')).out).toMatch(
    /^no host has counted a run in the last 24 h; .*history: true/,
  );
  // A process writes its counters when it stops.
  await app.runtime.stop();
  const { code, out } = await run('stats', 'work', '--hosts', '--hours', '2');
  expect([code, out.split('\n')[0]]).toEqual([
    0,
    expect.stringMatching(/^HOST +COMPLETED +FAILED +DEAD +RUN 50 % +RUN 95 % +LAST MINUTE$/),
  ]);
  expect(out).toMatch(/^\S+ +2 +1 +1 +\d+ ms +\d+ ms +\d{4}-\d\d-\d\dT\d\d:\d\dZ$/m);
  const { byHost, from, to } = JSON.parse(
    (await run('stats', 'work', '--hosts', '--hours', '2', '--json')).out,
  );
  expect(byHost).toMatchObject({ [hostname()]: { completed: 2, failed: 1, dead: 1, run: { count: 3 } } });
  expect(Date.parse(to) - Date.parse(from)).toBeGreaterThanOrEqual(7_200_000);
});

it('stats shows about how much memory the queue takes', async () => {
  const { queue } = await producing();
  await queue.addBulk(
    Array.from({ length: 500 }, (_, i) => ({ name: 'x', data: 'a'.repeat(2_000), options: { id: `j${i}` } })),
  );
  expect((await run('stats', 'work')).out).toMatch(/\nabout 1\.\d MB of Redis, without counters\n$/);
  const { memoryBytes } = JSON.parse((await run('stats', 'work', '--json')).out);
  expect(memoryBytes).toBeGreaterThan(1_000_000);
  expect(memoryBytes).toBeLessThan(1_700_000);
});

it('job shows the stack of the failure on separate lines', async () => {
  const { queue } = await producing({
    handlers: {
      bad: () => {
        throw new TypeError('two\nlines');
      },
    },
    queue: { defaults: { attempts: 1 } },
  });
  await queue.add('bad', null, { id: 'a' });
  await until(async () => (await queue.counts()).dead === 1, PATIENT);
  const { out } = await run('job', 'work', 'a');
  expect(out).toMatch(
    /^failed +attempt 1, 20\S+Z, retries-exhausted\nfailure +TypeError: two\n +lines\n {8,}at /m,
  );
  expect(out).toMatch(/^attempt 1 +failed .*: TypeError: two$/m);
  expect(out).not.toContain('u000a');
});

it('job shows that the queue is paused, and that no process works on it', async () => {
  const { queue } = await producing();
  await queue.add('x', null, { id: 'a' });
  const reasons = async () =>
    [...(await run('job', 'work', 'a')).out.matchAll(/^waits because +(.*)$/gm)].map((one) => one[1]);
  expect(await reasons()).toEqual(['no process works on the queue']);
  await queue.pause();
  await queue.limits.hold('1h');
  expect(await reasons()).toEqual([
    'the queue is paused',
    'no process works on the queue',
    expect.stringMatching(/^the queue is held for /),
  ]);
});
