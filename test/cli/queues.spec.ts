import { once } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { execFile, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import { atEnd, temporaryFolder } from '../support/cleanup.js';
import { bootQueue, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { godwit, godwitOn, runHere, runOn } from './support.js';

const redis = useRedis();

const start = (...words: string[]) => godwitOn(redis, ...words);
const run = (...words: string[]) => runOn(redis, ...words);

const json = async (...words: string[]) => {
  const { code, out, err } = await run(...words, '--json');
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out);
};

const producing = (options: QueueAppOptions = {}) => bootQueue(redis, { watch: false, ...options });

/** An application that works, with jobs that died. */
async function withDeaths(count: number) {
  const app = await producing({
    handlers: {
      bad: () => {
        throw new UnrecoverableError('the \u001b[31mmailer says no');
      },
      echo: (job) => job.data,
    },
    queue: { defaults: { retention: '1h' } },
  });
  await app.queue.addBulk(Array.from({ length: count }, (_, i) => ({ name: 'bad', data: { i } })));
  await until(async () => (await app.queue.counts()).dead === count, PATIENT);
  return app;
}

describe('what there is', () => {
  it('queues, workers and running jobs, as tables and as JSON', async () => {
    const end = latch('the end of the job');
    const app = await producing({ handlers: { slow: () => end.promise }, queues: [{ name: 'other' }] });
    const { id } = await app.queue.add('slow', null);
    await app.queueOf('other').add('x', null);
    await until(async () => (await json('running')).length === 1, PATIENT);
    const { code, out } = await run('queues');
    expect(code).toBe(0);
    expect(out).toMatch(/^QUEUE +WAITING +ACTIVE +DELAYED +DEAD +OLDEST +WORKERS +STATE\n/);
    expect(out).toMatch(/^work +0 +1 +0 +0 +- +1 +running$/m);
    expect(out).toMatch(/^other +1 +0 +0 +0 .* 0 +no workers$/m);
    expect(await json('queues', 'work')).toMatchObject([{ name: 'work', counts: { active: 1 }, workers: 1 }]);
    expect((await run('workers')).out).toMatch(new RegExp(` ${process.pid} +(running|blocked \\S+) +1/10 `));
    expect((await run('running', 'work')).out).toContain(id);
    expect(await json('running', 'other')).toEqual([]);
    end.open();
  });

  it('a table fits the width, and has colours only on request', async () => {
    const name = `a-queue-with-a-long-name-${'x'.repeat(90)}`;
    const app = await producing({ queues: [{ name }] });
    await app.queueOf(name).add('x', null);
    const args = ['queues', '-u', redis.url, '--prefix', redis.prefix];
    const outputOf = (env: Record<string, string>) =>
      spawnSync(process.execPath, ['dist/subpaths/cli.js', ...args], {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], ...env },
      }).stdout;
    const narrow = outputOf({ COLUMNS: '80' });
    expect(Math.max(...narrow.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(narrow).toContain('…');
    expect(outputOf({ COLUMNS: '200' })).toContain(name);
    const plain = outputOf({});
    expect(plain).toContain(name);
    expect(plain).not.toContain('\u001b');
    expect(outputOf({ FORCE_COLOR: '1' })).toContain('\u001b[31m');
    expect(outputOf({ FORCE_COLOR: '1', NO_COLOR: '1' })).not.toContain('\u001b');
  });

  it('large output is written completely, even if it is read late', async () => {
    const { queue } = await producing();
    await queue.addBulk(
      Array.from({ length: 400 }, () => ({ name: 'receipt', data: { to: 'x'.repeat(500) } })),
    );
    const listing = start('jobs', 'work', '--limit', '400', '--json');
    listing.stdout.pause();
    await once(listing.stdout, 'readable');
    listing.stdout.resume();
    expect(await listing.ended()).toBe(0);
    expect((JSON.parse(listing.out) as { jobs: unknown[] }).jobs).toHaveLength(400);
  });

  it('fails if its output cannot be written', async () => {
    await producing();
    const full = openSync('/dev/full', 'w');
    atEnd(() => closeSync(full));
    const args = ['queues', '-u', redis.url, '--prefix', redis.prefix];
    const { code, err } = await godwit(args, ['ignore', full, 'pipe']).result();
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('the output cannot be written') });
  });

  it('counters and schedules', async () => {
    const app = await withDeaths(2);
    await app.queue.schedules.upsert('daily', { cron: '0 7 * * *' }, { name: 'echo' });
    expect((await run('stats', 'work')).out).toMatch(/^bad +0 +2 +2$/m);
    expect((await run('schedules')).out).toMatch(/^work +daily +0 7 \* \* \* .*T.*Z +0 +-$/m);
    expect(await json('schedules', 'work', 'run', 'daily')).toMatchObject({ schedule: 'daily' });
    expect((await run('schedules', 'work', 'pause', 'daily')).out).toBe('paused\n');
    expect((await run('schedules', 'work', 'remove', 'daily', '--yes')).code).toBe(0);
    expect((await run('schedules', 'work', 'pause', 'daily')).code).toBe(3);
  });

  it('the exit code distinguishes wrong use from something that does not exist', async () => {
    await producing();
    // A process, for its real exit code.
    expect(await start('jobs', 'none').result()).toMatchObject({
      code: 3,
      err: expect.stringMatching(/no queue "none"/),
    });
    expect(await run('jobs')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/an argument is missing/),
    });
    expect((await run('queues', '--nope')).code).toBe(2);
    expect((await run('job', 'work', 'none')).code).toBe(3);
    expect((await run('add', 'a b', 'x')).code).toBe(2);
    const away = godwit(['queues', '-u', 'redis://127.0.0.1:1']);
    expect([await away.ended(), away.err]).toEqual([1, expect.stringMatching(/no connection to Redis/)]);
  });
});

describe('acts on jobs', () => {
  it('adds with data from the line, a file and standard input, and waits for the end', async () => {
    const app = await withDeaths(0);
    const file = join(temporaryFolder(), 'data.json');
    writeFileSync(file, '{"from":"file"}');
    expect(await json('add', 'work', 'echo', '-d', '{"from":"line"}', '--wait')).toMatchObject({
      result: { from: 'line' },
    });
    expect(await json('add', 'work', 'echo', '-d', `@${file}`, '--wait')).toMatchObject({
      result: { from: 'file' },
    });
    const args = [
      'dist/subpaths/cli.js',
      'add',
      '-u',
      redis.url,
      '--prefix',
      redis.prefix,
      'work',
      'echo',
      '-d',
      '-',
      '--wait',
    ];
    // Not spawnSync: the worker is in this process.
    const piping = promisify(execFile)(process.execPath, args);
    piping.child.stdin!.end('{"from":"pipe"}');
    const piped = await piping;
    expect(piped.stdout).toMatch(/ completed: \{"from":"pipe"\}\n$/);
    expect(await run('add', 'work', 'bad', '--wait')).toMatchObject({ code: 1 });
    expect(await run('add', 'work', 'echo', '-d', '{')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--data is not valid JSON/),
    });
    await app.queue.pause();
    await run('add', 'work', 'echo', '--id', 'same', '--delay', '1h');
    expect(await json('add', 'work', 'echo', '--id', 'same')).toMatchObject({ duplicate: true });
  });

  it('stops waiting for the end of a job at a signal; the job stays', async () => {
    const { queue } = await producing();
    await queue.add('x', null);
    const command = start('add', 'work', 'echo', '--id', 'long', '--wait');
    await until(async () => (await queue.get('long')) !== null, PATIENT);
    expect(await command.end('SIGTERM')).toMatchObject({ code: 130 });
    expect(command.err).toBe('');
    expect(await queue.get('long')).toMatchObject({ state: 'waiting' });
  });

  it('lists, shows, promotes, cancels and removes them; what cannot be undone is asked before', async () => {
    const { queue } = await producing();
    await queue.add('x', { secret: 1 }, { id: 'a' });
    await queue.add('x', null, { id: 'b', delay: '1h' });
    await queue.add('y', null, { id: 'c' });
    expect((await run('jobs', 'work')).out).toMatch(/^a +x +0 [\s\S]*^c +y /m);
    expect((await json('jobs', 'work', '--name', 'y')).jobs).toMatchObject([{ id: 'c' }]);
    expect((await run('jobs', 'work', '--limit', '1')).out).toMatch(/^more: --cursor \S+$/m);
    for (const id of ['g1', 'g2']) await queue.add('x', null, { id, group: 'tenant 7' });
    expect((await json('jobs', 'work', '--group', 'tenant 7')).jobs).toMatchObject([
      { id: 'g1' },
      { id: 'g2' },
    ]);
    expect((await run('jobs', 'work', '--group', 'tenant 7', '--limit', '1')).out).toMatch(
      /^looked at 1 waiting job\nmore: --cursor \S+$/m,
    );
    expect((await run('jobs', 'work', '--group', 'none')).out).toBe('no waiting jobs match\n');
    await queue.remove({ state: 'waiting', contains: 'g' });
    expect((await run('job', 'work', 'a')).out).toMatch(/^data +\{"secret":1\}$/m);
    expect((await run('promote', 'work', 'b')).out).toBe('b promoted\n');
    expect((await run('cancel', 'work', 'b', 'none')).code).toBe(3);
    expect(await run('remove', 'work', 'a')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^godwit: remove 1 job of queue work\? Add --yes/),
    });
    expect(await queue.get('a')).not.toBeNull();
    expect(await json('remove', 'work', 'a', 'c', '--yes')).toEqual([
      { id: 'a', result: 'removed' },
      { id: 'c', result: 'removed' },
    ]);
    expect((await queue.counts()).waiting).toBe(0);
  });

  it('cleans jobs of a state by name and age, after a question', async () => {
    const { queue } = await producing();
    for (const name of ['x', 'x', 'y']) await queue.add(name, null);
    expect(await run('clean', 'work', 'waiting', '--name', 'x')).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        /Remove jobs of queue work \(state waiting, name x\); it has 3 waiting in all\?/,
      ),
    });
    expect(await json('clean', 'work', 'waiting', '--older-than', '1h', '--yes')).toMatchObject({ count: 0 });
    expect((await run('clean', 'work', 'waiting', '--name', 'x', '--yes')).out).toBe('2 removed\n');
    expect((await queue.counts()).waiting).toBe(1);
    expect(await run('clean', 'work', 'active', '--yes')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/"active" must be one of waiting, delayed/),
    });
    expect((await run('clean', 'none', 'dead', '--yes')).code).toBe(3);
    expect((await run('clean', 'work', 'dead', '--reason', 'tired', '--yes')).code).toBe(2);
  });

  it('shows dead jobs by reason and name, and retries or removes all that match', async () => {
    const { queue } = await withDeaths(3);
    const { out } = await run('dead', 'work');
    expect(out).toMatch(/^ +3 +unrecoverable +bad +the \\u001b\[31mmailer says no$/m);
    expect(out).not.toContain('\u001b');
    // Why jobs die now, not why they died first.
    expect(await json('dead', 'work', '--limit', '1')).toMatchObject({ jobs: [{ data: { i: 2 } }] });
    expect((await run('dead', 'work', '--limit', '2')).out).toContain(
      'of the last 2 dead jobs that match; there may be more: see --limit\n',
    );
    expect(await json('dead', 'work', 'remove', '--dry-run')).toMatchObject({ count: 3 });
    expect(await run('dead', 'work', 'remove')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/remove 3 dead jobs of queue work: 3 bad \(unrecoverable\)\?/),
    });
    expect((await run('dead', 'work', 'retry', '--name', 'other', '--yes')).out).toBe('no dead jobs match\n');
    expect((await run('dead', 'work', 'retry', '--where', 'i="1"', '--yes')).out).toBe(
      'no dead jobs match\n',
    );
    expect(await json('dead', 'work', 'retry', '--where', 'i=1', '--dry-run')).toMatchObject({ count: 1 });
    expect(await json('jobs', 'work', 'dead')).toEqual(await json('jobs', 'work', '--state', 'dead'));
    expect(await run('jobs', 'work', 'dead', '--state', 'dead')).toMatchObject({ code: 2 });
    expect(await json('jobs', 'work', '--state', 'dead', '--where', 'i=2')).toMatchObject({
      jobs: [{ data: { i: 2 } }],
    });
    expect(await run('jobs', 'work', '--where', 'i')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--where must be a field, = and a value, such as tenant.id=7, got "i"'),
    });
    expect(await json('dead', 'work', 'retry', '--limit', '1', '--yes')).toEqual({ act: 'retry', count: 1 });
    await until(async () => (await queue.counts()).dead === 3, PATIENT);
    expect(await json('dead', 'work', 'retry', '--rate', '100/s', '--yes')).toEqual({
      act: 'retry',
      count: 3,
    });
    expect(await run('dead', 'work', 'retry', '--rate', '50', '--yes')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--rate must be a number per time, such as 50/s or 100/5m, got "50"'),
    });
    await until(async () => (await queue.counts()).dead === 3, PATIENT);
    expect(await json('dead', 'work', 'remove', '--rate', '50/s', '--yes')).toEqual({
      act: 'remove',
      count: 3,
    });
  });

  it('shows dead jobs with the same reason and name by their errors', async () => {
    const { queue } = await producing({
      handlers: {
        call: ({ data }) => {
          throw new UnrecoverableError(String(data));
        },
      },
    });
    const errors = ['order 1 has no address', 'card 4711 is refused', 'order 22 has no address'];
    for (const [i, error] of errors.entries()) {
      // oxlint-disable-next-line no-await-in-loop -- they die in this order
      await queue.add('call', error);
      // oxlint-disable-next-line no-await-in-loop -- the same
      await until(async () => (await queue.counts()).dead === i + 1, PATIENT);
    }
    const { out } = await run('dead', 'work');
    expect(out).toMatch(/^ +2 +unrecoverable +call +order 22 has no address\n +1 .* card 4711 is refused$/m);
    const group = { reason: 'unrecoverable', name: 'call' };
    expect((await json('dead', 'work')).groups).toEqual([
      { ...group, count: 2, error: 'UnrecoverableError: order # has no address', last: errors[2] },
      { ...group, count: 1, error: 'UnrecoverableError: card # is refused', last: errors[1] },
    ]);
    expect((await run('dead', 'work', 'retry')).err).toContain('of queue work: 3 call (unrecoverable)?');
  });

  it('promotes, cancels and removes all that match, at a rate', async () => {
    const { queue } = await producing();
    await queue.addBulk(
      [1, 2, 3].map((tenant) => ({ name: 'x', data: { tenant }, options: { delay: '1h' } })),
    );
    expect(await run('promote', 'work')).toMatchObject({
      code: 2,
      err: expect.stringContaining('promote: give ids, or a filter such as --name, or --all'),
    });
    expect(await run('cancel', 'work', 'a', '--name', 'x')).toMatchObject({
      code: 2,
      err: expect.stringContaining('cancel: give ids or a filter, not both'),
    });
    expect(await run('cancel', 'work', '--where', 'tenant=1')).toMatchObject({
      code: 2,
      err: expect.stringContaining('cancel jobs of queue work (where tenant=1)?'),
    });
    expect(await json('promote', 'work', '--where', 'tenant=3', '--rate', '50/s', '--yes')).toMatchObject({
      count: 1,
    });
    const cancel = ['cancel', 'work', '--state', 'delayed', '--limit', '1', '--yes'];
    expect((await run(...cancel)).out).toBe('1 cancelled or told to stop\n');
    expect(await queue.counts()).toMatchObject({ waiting: 1, delayed: 1 });
    expect(await json('cancel', 'work', '--all', '--rate', '100/s', '--yes')).toMatchObject({ count: 2 });
    await queue.add('x', 1);
    expect(await json('clean', 'work', 'waiting', '--rate', '100/s', '--yes')).toMatchObject({ count: 1 });
    expect((await run('cancel', 'none', '--all', '--yes')).code).toBe(3);
  });

  it('shows the progress of an act at a rate, and stops at a signal', async () => {
    const { queue } = await producing();
    await queue.addBulk(Array.from({ length: 1_000 }, (_, i) => ({ name: 'x', data: i })));
    const cleaning = start('clean', 'work', 'waiting', '--rate', '20/s', '--yes');
    await cleaning.said(/^\d+ removed$/m);
    cleaning.kill('SIGINT');
    const { code, out } = await cleaning.result();
    const removed = Number(/(\d+) removed\n$/.exec(out)?.[1]);
    expect([code, (await queue.counts()).waiting]).toEqual([130, 1_000 - removed]);
  });
});

describe('acts on queues', () => {
  it('pauses, resumes, audits, repairs and deletes them', async () => {
    const { queue } = await producing();
    await queue.add('x', null, { id: 'a' });
    expect((await run('pause', 'work')).out).toBe('work paused\n');
    expect((await run('pause', 'work')).out).toBe('work was paused already\n');
    expect(await json('resume', 'work')).toEqual([{ queue: 'work', changed: true }]);
    expect(await run('audit', 'work')).toMatchObject({ code: 0, out: '1 job checked, no damage\n' });
    await redis.admin.lpush(`{${redis.prefix}:work}:wait`, 'ghost');
    expect(await run('audit', 'work')).toMatchObject({
      code: 4,
      out: expect.stringMatching(/^no-body .*ghost/m),
    });
    expect((await run('repair', 'work', '--yes')).out).toBe('1 repair\n');
    expect((await run('repair', 'work')).out).toBe('no damage\n');
    expect((await run('obliterate', 'work', '--yes')).out).toMatch(/^queue work with 2 jobs is deleted/);
    expect((await run('queues')).out).not.toContain('work ');
  });
});

it('the log of a job is listed by attempt, with how each attempt failed', async () => {
  const { queue } = await producing({
    handlers: {
      sync: async (job) => {
        await job.log(`fetching page ${job.attempt}`);
        await job.log('storing it');
        if (job.attempt < 3) throw new Error(`page ${job.attempt} is broken`);
      },
    },
    queue: { defaults: { retention: '1h', attempts: 3, backoff: 0 } },
  });
  await queue.add('sync', null, { id: 'a' });
  await until(async () => (await queue.get('a'))?.state === 'completed', PATIENT);
  const { out } = await run('job', 'work', 'a');
  const failed = (attempt: number) =>
    `attempt ${attempt} +failed \\S+ after [\\d.]+ ms in \\S+: Error: page ${attempt} is broken\n`;
  const logged = (attempt: number) => ` +log +fetching page ${attempt}\n +storing it\n`;
  expect(out).toMatch(
    new RegExp(`${failed(1)}${logged(1)}${failed(2)}${logged(2)}attempt 3 +completed\n${logged(3)}`),
  );
  expect((await json('job', 'work', 'a')).logs.slice(-2)).toEqual([
    { attempt: 3, text: 'fetching page 3' },
    { attempt: 3, text: 'storing it' },
  ]);
});

describe('limits and groups', () => {
  it('show how many jobs of a group run, also without a limit', async () => {
    const end = latch('the end of the jobs');
    const { queue, said } = await bootQueue(redis, {
      handlers: { mail: () => end.promise },
      queue: { groups: { fairness: 'in-flight' } },
    });
    await queue.addBulk([0, 1].map(() => ({ name: 'mail', data: null, options: { group: 'tenant-7' } })));
    await said.take(2, ({ type }) => type === 'active', PATIENT);
    const { out } = await run('groups', 'work');
    expect(out).toMatch(/^group tenant-7 +- +- +2 +0 /m);
    expect(out).toMatch(
      /^fairness 'in-flight': the group with the fewest running jobs starts the next one$/m,
    );
    expect((await run('limits', 'work')).out).toMatch(/^each group \(in-flight\) +- +- +- +- +free$/m);
    end.open();
  });

  it('are listed and changed, and a job tells which of them keep it waiting', async () => {
    const { queue } = await producing({ queue: { groups: { concurrency: 2 } } });
    await queue.add('mail', null, { id: 'a', group: 'tenant-7' });
    expect((await run('limits', 'work', 'set', '--rate', '5/1m', '--concurrency', '3')).code).toBe(0);
    expect((await run('limits', 'work', 'hold', '1h')).code).toBe(0);
    expect((await run('groups', 'work', 'pause', 'tenant-7')).out).toBe('paused\n');
    const listed = await run('limits', 'work');
    expect(listed.out).toMatch(/^OF +RATE +LEFT +RUNNING +WAITING +STATE\n/);
    expect(listed.out).toMatch(/^the queue +5 in 60 s +0 +0\/3 +1 +held for 60 m$/m);
    expect(listed.out).toMatch(/^each group +- +- +0\/2 +- /m);
    expect((await run('add', 'work', 'mail', '--id', 'b', '--group', 'tenant-8')).code).toBe(0);
    expect((await queue.get('b'))?.group).toBe('tenant-8');
    expect((await run('add', 'work', 'mail', '--group', 'a\tb')).code).toBe(2);
    await queue.remove('b');
    const job = await run('job', 'work', 'a');
    expect(job.out).toMatch(/^waits because +the queue is held for (59|60) min/m);
    await json('limits', 'work', 'release');
    // The same forms as those of `dead retry`.
    const forms = ['50/s', '50/1s', '50/1000', '50/1000ms'];
    for (const rate of forms) {
      await json('limits', 'work', 'set', '--rate', rate);
      expect((await json('limits', 'work'))[0].rate).toMatchObject({ max: 50, perMs: 1_000 });
    }
    await json('limits', 'work', 'set', '--rate', 'none');
    expect(await json('limits', 'work')).toMatchObject([{ rate: null, concurrency: 3, heldForMs: 0 }, {}]);
    await json('limits', 'work', 'clear');
    await json('groups', 'work', 'resume', 'tenant-7');
    expect((await json('limits', 'work'))[0]).toMatchObject({ concurrency: null, isLive: false });
    const bad = [
      ['limits', 'work', 'set'],
      ['limits', 'work', 'set', '--rate', '5'],
      ['limits', 'work', 'set', '--rate', '5/'],
      ['limits', 'work', 'set', '--rate', '5/soon'],
      ['limits', 'work', 'hold'],
      ['limits', 'work', 'hold', 'soon'],
      ['limits', 'work', 'stop'],
      ['limits', 'work', 'clear', '--name', 'a', '--shared', 'b'],
      ['groups', 'work', 'pause'],
      ['groups', 'work', 'stop', 'a'],
      ['groups', 'work', 'pause', 'x'.repeat(257)],
      ['groups', 'work', 'pause', 'a\tb'],
    ];
    for (const words of bad) expect([words, (await run(...words)).code]).toEqual([words, 2]);
    expect((await run(...bad.at(-1)!)).err).toContain(
      'group() must be a string of 1 to 256 bytes without control characters, got "a\\tb"',
    );
  });
});

describe('health and doctor', () => {
  it('report no problem for a queue with workers', async () => {
    const app = await withDeaths(0);
    await until(async () => (await json('workers')).length === 1, PATIENT);
    expect(await run('health')).toMatchObject({ code: 0, out: 'healthy, 1 queue\n' });
    const { code, out } = await run('doctor', '--deep');
    expect([code, out.match(/^fail/gm)]).toEqual([0, null]);
    expect(out).toMatch(/^ok +queue work +0 waiting, 1 process$/m);
    expect(out).toMatch(/^ok +round trip +p50 [\d.]+ ms, p99 [\d.]+ ms$/m);
    expect(out).toMatch(/^ok +audit work /m);
    await app.close();
  });

  it('find planted faults', async () => {
    const { queue } = await producing();
    await queue.add('x', null);
    await queue.schedules.upsert('late', { every: '1h' }, { name: 'x' });
    const tag = `{${redis.prefix}:work}:`;
    await redis.admin.zadd(`${tag}upcoming`, 1, 'late');
    await redis.admin.zadd(`${tag}workers`, 1, 'gone');
    await redis.admin.lpush(`${tag}wait`, 'ghost');
    await queue.pause();
    const { code, out } = await run('doctor', '--deep');
    expect(code).toBe(4);
    for (const found of [
      /^fail +queue work +2 jobs wait and no process works on it: start a worker whose providers have its processor$/m,
      /^warn +queue work +is paused; godwit resume work$/m,
      /^fail +queue work +1 schedule is late \(late\): start a worker$/m,
      /^fail +queue work +1 worker went silent/m,
      /^fail +audit work +\d problems?, such as: .*godwit repair work$/m,
      /^warn +workers +there are no worker processes$/m,
    ])
      expect(out).toMatch(found);
    expect(await run('health', '--max-waiting', '1')).toMatchObject({
      code: 4,
      out: expect.stringMatching(/no process works on it\nwork: 2 jobs wait/),
    });
    await redis.flush();
  });

  it('doctor tells that Redis is away', async () => {
    const away = await runHere(['doctor', '-u', 'redis://127.0.0.1:1']);
    expect([away.code, away.out]).toEqual([4, expect.stringMatching(/fail +Redis +.*check --url/)]);
  });
});

describe('commands without an end', () => {
  it('tail prints events until it is stopped', async () => {
    const { queue } = await producing();
    const command = start('tail', 'work', '--type', 'added');
    const add = async () => {
      await queue.add('seen', null);
      return /work +added +seen/.exec(command.out);
    };
    await until(add, PATIENT);
    expect((await command.end('SIGINT')).code).toBe(130);
    const lines = start('tail', 'work', '--json', '--since', '0');
    expect(JSON.parse(await lines.said(/^\{.*\}$/m))).toMatchObject({ type: 'added', name: 'seen' });
    await lines.end('SIGINT');
  });

  it('exporter serves metrics and the backlog', async () => {
    const { queue } = await producing();
    await queue.add('x', null);
    const command = start('exporter', '--port', '0', '--host', '127.0.0.1');
    const url = (await command.said(/http:\S+/)).replace('/metrics', '');
    const page = await (await fetch(`${url}/metrics`)).text();
    expect(page).toContain('godwit_queue_jobs{queue="work",state="waiting"} 1\n');
    expect(page).not.toContain('godwit_exchange');
    expect(await (await fetch(`${url}/scale/work?concurrency=1`)).json()).toMatchObject({ wanted: 1 });
    const taken = new URL(url).port;
    expect(await run('exporter', '--port', taken, '--host', '127.0.0.1')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^godwit: cannot listen: .*EADDRINUSE.*; choose another --port or --host$/m),
    });
    expect((await command.end('SIGTERM')).code).toBe(0);
  });

  it('exporter prints a URL with brackets for an IPv6 address', async () => {
    const command = start('exporter', '--port', '0', '--host', '::1');
    const url = await command.said(/http:\S+/);
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+\/metrics$/);
    expect((await fetch(url)).status).toBe(200);
    expect((await command.end('SIGTERM')).code).toBe(0);
  });

  it('watch prints queues that changed, and no others', async () => {
    const { queue, queueOf } = await producing({ queues: [{ name: 'still' }] });
    await queueOf('still').add('x', null);
    await queue.add('x', null);
    const command = start('watch', '--interval', '1');
    await command.said(/ work +1 +0 +0 /);
    await queue.addBulk([
      { name: 'x', data: null },
      { name: 'x', data: null },
    ]);
    await command.said(/ work +3 \+2 +0 +0 /);
    expect(command.out.match(/ still /g)).toHaveLength(1);
    expect((await command.end('SIGINT')).code).toBe(130);
    const { code, out } = await run('watch', 'work', '--json', '--times', '1');
    expect([code, JSON.parse(out)]).toEqual([
      0,
      expect.objectContaining({ queue: 'work', waiting: 3, changes: null }),
    ]);
  });

  it('top needs a terminal', async () => {
    expect(await run('top')).toMatchObject({ code: 2, err: expect.stringMatching(/top needs a terminal/) });
  });
});

describe('acl', () => {
  it('prints the rules of a user, without asking Redis', async () => {
    const words = 'acl --prefix shop --role producer -u redis://127.0.0.1:1'.split(' ');
    const { code, out } = await runHere(words);
    expect(code).toBe(0);
    expect(out).toMatch(/^ACL SETUSER shop reset on >secret ~\{shop:\* .*\+evalsha/);
    expect(out).not.toContain('+bzpopmin');
    expect((await runHere(['acl', '--role', 'x'])).code).toBe(2);
  });
});

describe('completion', () => {
  it.each(['bash', 'zsh', 'fish'])('has a script for %s', async (shell) => {
    const { code, out } = await runHere(['completion', shell]);
    expect(code).toBe(0);
    expect(out).toContain('queues');
  });

  it('is a script that bash takes', async () => {
    const { out } = await runHere(['completion', 'bash']);
    expect(spawnSync('bash', ['-n'], { input: out }).status).toBe(0);
  });

  it('needs the name of a shell', async () => {
    expect((await runHere(['completion'])).code).toBe(2);
  });
});
