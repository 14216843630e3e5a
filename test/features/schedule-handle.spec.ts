import { describe, expect, it } from 'vitest';
import { bootQueue, itOnRedis, keyOf, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

// `queue.schedules` by hand. The application has no handlers, so that no schedule fires.
const redis = useRedis();
const HOUR = 3_600_000;
const boot = () => bootQueue(redis, { watch: false });
const daily = { cron: '0 7 * * MON-FRI', tz: 'Europe/Berlin' } as const;

describe('upsert', () => {
  it('creates one, and returns it', async () => {
    const { queue } = await boot();
    const template = { name: 'report', data: { for: 'all' }, options: { attempts: 5 } };
    const before = Date.now();
    const { nextAt, ...rest } = await queue.schedules.upsert('daily', daily, template);
    expect(rest).toEqual({ id: 'daily', queue: 'work', outcome: 'created' });
    expect(nextAt!.getTime()).toBeGreaterThan(before - 60_000);
    const snapshot = (await queue.schedules.get('daily'))!;
    expect(snapshot).toEqual({
      id: 'daily',
      queue: 'work',
      rule: daily,
      template,
      nextAt,
      lastAt: null,
      lastJobId: null,
      owner: null,
      fired: 0,
      paused: false,
      ended: false,
      createdAt: snapshot.createdAt,
    });
    expect(Math.abs(snapshot.createdAt.getTime() - before)).toBeLessThan(60_000);
    expect(await queue.schedules.get('nobody')).toBeNull();
  });

  it('called again changes nothing, not even the revision', async () => {
    const { queue } = await boot();
    await queue.schedules.upsert('daily', daily, { name: 'report' });
    const dump = () => redis.admin.hgetall(keyOf(redis, 'firings'));
    const before = await dump();
    const again = { tz: 'Europe/Berlin', cron: '0 7 * * MON-FRI', limit: undefined };
    for (const options of [undefined, {}, { attempts: undefined }]) {
      const { outcome } = await queue.schedules.upsert('daily', again, {
        data: null,
        name: 'report',
        options,
      });
      expect([options, outcome]).toEqual([options, 'unchanged']);
    }
    expect(await dump()).toEqual(before);
  });

  it('of ten processes at once makes one', async () => {
    const { queue } = await boot();
    const upserts = Array.from({ length: 10 }, () => queue.schedules.upsert('daily', daily, { name: 'x' }));
    const outcomes = (await Promise.all(upserts)).map(({ outcome }) => outcome);
    expect(outcomes.filter((one) => one === 'created')).toHaveLength(1);
    expect(outcomes.filter((one) => one === 'unchanged')).toHaveLength(9);
    expect(await queue.schedules.list()).toHaveLength(1);
  });

  itOnRedis(
    'with another timing computes the next time from now, with another template or policy keeps it',
    async () => {
      const { queue } = await boot();
      const { nextAt: first } = await queue.schedules.upsert('s', { every: '1h' }, { name: 'x' });
      // As after an occurrence whose job was not made yet.
      const overdue = first!.getTime() - 10 * HOUR;
      await redis.admin.zadd(keyOf(redis, 'upcoming'), overdue, 's');
      const kept = await queue.schedules.upsert(
        's',
        { every: 3_600_000, overlap: 'skip' },
        { name: 'x', data: 2 },
      );
      expect(kept).toMatchObject({ outcome: 'updated', nextAt: new Date(overdue) });
      const changed = await queue.schedules.upsert(
        's',
        { every: '2h', overlap: 'skip' },
        { name: 'x', data: 2 },
      );
      expect(changed.outcome).toBe('updated');
      expect(changed.nextAt!.getTime()).toBeGreaterThanOrEqual(first!.getTime());
      expect(await queue.schedules.get('s')).toMatchObject({
        nextAt: changed.nextAt,
        rule: { every: '2h', overlap: 'skip' },
        template: { name: 'x', data: 2 },
      });
    },
  );

  it('lets an ended schedule continue if there is a next time again', async () => {
    const { queue } = await boot();
    // No interval begins before its end.
    const past = { every: '8760h', endAt: new Date(Date.now() + HOUR) } as const;
    expect(await queue.schedules.upsert('s', past, { name: 'x' })).toMatchObject({ nextAt: null });
    expect(await queue.schedules.get('s')).toMatchObject({ ended: true, paused: false, nextAt: null });
    expect(await queue.schedules.nextRuns('s', 3)).toEqual([]);
    const { nextAt } = await queue.schedules.upsert('s', { every: '1h' }, { name: 'x' });
    expect(await queue.schedules.get('s')).toMatchObject({ ended: false, nextAt });
  });

  it('refuses invalid values with a message, and changes nothing', async () => {
    const { queue } = await boot();
    const upsert = (id: unknown, rule: unknown, template: unknown) =>
      queue.schedules.upsert(id as string, rule as never, template as never);
    const refusals: [Promise<unknown>, string][] = [
      [upsert('a\nb', daily, { name: 'x' }), 'schedules.upsert().id must be 1 to 200 bytes'],
      [upsert(null, daily, { name: 'x' }), 'schedules.upsert().id must be'],
      [
        upsert('s', { cron: '0 0 30 2 *' }, { name: 'x' }),
        'schedules.upsert().rule.cron must be an expression that matches some date',
      ],
      [upsert('s', null, { name: 'x' }), 'schedules.upsert().rule must be an object'],
      [upsert('s', daily, undefined), 'schedules.upsert().template must be an object'],
      [
        upsert('s', daily, { name: 'x', options: { delay: 5 } }),
        'schedules.upsert().template.options.delay must be left out',
      ],
      [upsert('s', daily, { name: 'x', data: () => 1 }), 'schedules.upsert().template.data is a function'],
    ];
    for (const [refused, sentence] of refusals) await expect(refused).rejects.toThrow(sentence);
    const keys = await redis.keys();
    expect(keys.filter((key) => key !== keyOf(redis, 'meta'))).toEqual([]);
  });
});

describe('list', () => {
  itOnRedis('answers pages in the order of making, also past what cannot be read', async () => {
    const { queue } = await boot();
    for (const id of ['c', 'a', 'b']) await queue.schedules.upsert(id, { every: '1h' }, { name: id });
    for (const [i, id] of ['c', 'a', 'b'].entries())
      await redis.admin.zadd(keyOf(redis, 'scheduleOrder'), i, id);
    await redis.admin.hset(keyOf(redis, 'schedules'), 'a', 'words');
    const ids = async (page?: object) => (await queue.schedules.list(page)).map(({ id }) => id);
    expect(await ids()).toEqual(['c', 'a', 'b']);
    expect(await ids({ offset: 1, limit: 1 })).toEqual(['a']);
    expect(await ids({ offset: 3 })).toEqual([]);
    expect(await queue.schedules.get('a')).toMatchObject({ rule: null, template: null });
    const unreadable = { code: 'GODWIT_WRONG_STATE', message: expect.stringContaining('upsert') as string };
    await expect(queue.schedules.runNow('a')).rejects.toMatchObject(unreadable);
    expect(await queue.schedules.upsert('a', { every: '1h' }, { name: 'a' })).toMatchObject({
      outcome: 'updated',
    });
    expect(await queue.schedules.get('a')).toMatchObject({ rule: { every: '1h' } });
    await expect(queue.schedules.list({ limit: 1_001 })).rejects.toThrow(
      'schedules.list().limit must be an integer from 1 to 1000',
    );
    await expect(queue.schedules.list({ offset: -1 })).rejects.toThrow('schedules.list().offset must be');
  });

  it('returns as many as requested, although they are large', async () => {
    const { queue } = await boot();
    const data = 'x'.repeat(900_000);
    for (let i = 0; i < 7; i++) await queue.schedules.upsert(`s${i}`, { every: '1h' }, { name: 'x', data });
    expect(await queue.schedules.list({ limit: 6 })).toHaveLength(6);
  });
});

describe('pause and resume', () => {
  it('skip the occurrences meanwhile, and continue from now', async () => {
    const { queue } = await boot();
    await queue.schedules.upsert('s', { every: '1h' }, { name: 'x' });
    expect(await queue.schedules.pause('s')).toBe(true);
    expect(await queue.schedules.pause('s')).toBe(false);
    expect(await queue.schedules.get('s')).toMatchObject({ paused: true, nextAt: null });
    expect(await queue.schedules.nextRuns('s', 1)).toEqual([]);
    // A release that declares it again does not resume it.
    await queue.schedules.upsert('s', { every: '2h' }, { name: 'x' });
    expect(await queue.schedules.get('s')).toMatchObject({ paused: true, rule: { every: '2h' } });
    const before = Date.now();
    expect(await queue.schedules.resume('s')).toBe(true);
    expect(await queue.schedules.resume('s')).toBe(false);
    const { nextAt } = (await queue.schedules.get('s'))!;
    expect(nextAt!.getTime() % (2 * HOUR)).toBe(0);
    expect(nextAt!.getTime()).toBeGreaterThan(before - 60_000);
  });
});

it('runNow adds a job at once, also while it is paused, and does not count as an occurrence', async () => {
  const { queue } = await boot();
  const template = { name: 'report', data: { a: 1 }, options: { priority: 2, attempts: 7 } };
  const { nextAt } = await queue.schedules.upsert('daily', { ...daily, limit: 1 }, template);
  const one = await queue.schedules.runNow('daily');
  expect(one).toMatchObject({ queue: 'work', name: 'report', duplicate: false });
  expect(one.id).toMatch(/^daily@/);
  expect(await queue.schedules.get('daily')).toMatchObject({ fired: 0, nextAt, lastAt: null });
  await queue.schedules.pause('daily');
  const other = await queue.schedules.runNow('daily');
  expect(other.id).not.toBe(one.id);
  expect(await queue.get(other.id)).toMatchObject({ state: 'waiting', data: { a: 1 }, attempts: 7 });
});

it('nextRuns returns the next times, up to the limit and the end', async () => {
  const { queue } = await boot();
  const { nextAt } = await queue.schedules.upsert('s', { every: '1h', limit: 3 }, { name: 'x' });
  const first = nextAt!.getTime();
  const runs = async (count: number) =>
    (await queue.schedules.nextRuns('s', count)).map((at) => at.getTime());
  expect(await runs(2)).toEqual([first, first + HOUR]);
  expect(await runs(1_000)).toEqual([first, first + HOUR, first + 2 * HOUR]);
  await queue.schedules.upsert('s', { every: '1h', endAt: first + HOUR }, { name: 'x' });
  expect(await runs(10)).toEqual([first, first + HOUR]);
  for (const count of [0, 1_001, 1.5, Number.NaN, null])
    await expect(queue.schedules.nextRuns('s', count as number)).rejects.toThrow(
      'schedules.nextRuns().count must be an integer from 1 to 1000',
    );
});

it('a missing schedule is reported as such', async () => {
  const { queue } = await boot();
  const missing = {
    code: 'GODWIT_SCHEDULE_NOT_FOUND',
    message: `queue 'work' has no schedule "nobody"; create it with schedules.upsert() first`,
  };
  for (const act of ['pause', 'resume', 'runNow'] as const)
    await expect(queue.schedules[act]('nobody')).rejects.toMatchObject(missing);
  await expect(queue.schedules.nextRuns('nobody', 1)).rejects.toMatchObject(missing);
  expect(await queue.schedules.remove('nobody')).toBe(false);
  await queue.schedules.upsert('s', daily, { name: 'x' });
  expect(await queue.schedules.remove('s')).toBe(true);
  expect(await queue.schedules.list()).toEqual([]);
});

it('makes no more jobs than the limit, and stays listed as ended', async () => {
  const app = await bootQueue(redis, { handlers: { tick: () => undefined } });
  await app.queue.schedules.upsert('s', { every: '1s', limit: 2 }, { name: 'tick' });
  await until(async () => (await app.queue.schedules.get('s'))!.ended, PATIENT);
  const { lastAt, ...rest } = (await app.queue.schedules.get('s'))!;
  expect(rest).toMatchObject({ fired: 2, nextAt: null, lastJobId: `s@${lastAt!.toISOString()}` });
  // Another limit lets it fire again.
  await app.queue.schedules.upsert('s', { every: '1s', limit: 3 }, { name: 'tick' });
  await app.said.take(3, ({ type }) => type === 'added', PATIENT);
  await until(async () => (await app.queue.schedules.get('s'))!.ended, PATIENT);
  expect(await app.queue.schedules.get('s')).toMatchObject({ fired: 3 });
});

it('is gone with its queue', async () => {
  const { queue } = await boot();
  await queue.schedules.upsert('s', daily, { name: 'x' });
  await queue.obliterate();
  expect(await queue.schedules.list()).toEqual([]);
  expect((await redis.keys()).filter((key) => /:(schedules|firings)$/.test(key))).toEqual([]);
});

describe('the first run and the last ones', () => {
  it('run at once on request, and only when the schedule is new', async () => {
    const { queue, ended } = await bootQueue(redis, { handlers: { job: () => 1 } });
    const rule = { cron: '0 0 1 1 *', immediately: true } as const;
    const { nextAt } = await queue.schedules.upsert('s', rule, { name: 'job', options: { retention: '1h' } });
    const runs = () => queue.schedules.history('s');
    await until(async () => (await runs()).length > 0, PATIENT);
    const jobId = (await runs())[0]!.jobId;
    await ended(jobId);
    await queue.schedules.upsert('s', { ...rule, cron: '0 0 2 1 *' }, { name: 'job' });
    expect((await queue.schedules.get('s'))!.nextAt!.getTime()).toBeGreaterThan(nextAt!.getTime() + 60_000);
    expect(await queue.schedules.history('s')).toEqual([
      { at: nextAt, jobId, job: expect.objectContaining({ id: jobId, state: 'completed', result: 1 }) },
    ]);
  });

  it('counts from the end of the last run', async () => {
    const { queue, ended } = await bootQueue(redis, { handlers: { job: () => 1 } });
    await queue.schedules.upsert('s', { every: '1s', afterEnd: true, immediately: true }, { name: 'job' });
    await until(async () => (await queue.schedules.history('s')).length >= 2, PATIENT);
    const [second, first] = await queue.schedules.history('s');
    await ended(second!.jobId);
    expect(second!.at.getTime() - first!.at.getTime()).toBeGreaterThanOrEqual(1_000);
    expect(await queue.schedules.nextRuns('s', 5)).toHaveLength(1);
  });

  it('has ended with the last run that its interval and endAt allow', async () => {
    const { queue, said } = await bootQueue(redis, { handlers: { job: () => 1 } });
    const rule = { every: '1h', afterEnd: true, immediately: true, endAt: Date.now() + 60_000 } as const;
    await queue.schedules.upsert('s', rule, { name: 'job' });
    await said.first(({ type }) => type === 'completed', PATIENT);
    expect(await queue.schedules.get('s')).toMatchObject({ nextAt: null, ended: true, fired: 1 });
    expect(await queue.schedules.nextRuns('s', 5)).toEqual([]);
  });

  it.each([
    ['an end in the past', { every: '1m', endAt: 1 }, 'rule.endAt must be in the future'],
    [
      'a start at once and at another time',
      { every: '1m', immediately: true, startAt: 9_999_999_999_999 },
      'rule.immediately',
    ],
    ['a cron from the end', { cron: '* * * * *', afterEnd: true }, 'rule.afterEnd'],
    ['an overlap that cannot be', { every: '1m', afterEnd: true, overlap: 'skip' }, 'rule.afterEnd'],
  ])('refuses %s', async (_, rule, place) => {
    const { queue } = await boot();
    await expect(queue.schedules.upsert('s', rule as never, { name: 'job' })).rejects.toThrow(place);
    expect(await queue.schedules.list()).toEqual([]);
  });
});
