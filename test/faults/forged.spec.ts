import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { QueueKeys, processKeys, type QueueKeyName } from '#lib/engine/keys.js';
import { encodeBody, NO_OPTIONS } from '#lib/job/job-record.js';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

// Someone who may write under the prefix may write anything. That must stop no worker, and each forged value may harm
// one job only.
const redis = useRedis({ leaves: ['active', 'worker', 'workers', 'toCancel', 'processes', 'declarers'] });

const GOOD = 40;
const BODY = encodeBody('one', Date.now(), NO_OPTIONS, '1');
const GARBAGE = Buffer.from([0xff, 0x00, 0xfe, 0x0a, 0xc3, 0x28]);
const HUGE = 'x'.repeat(300_000);

interface Forger {
  readonly admin: Redis;
  readonly key: (name: QueueKeyName) => string;
  readonly keys: QueueKeys;
}

async function working(): Promise<{ app: QueueApp; forger: Forger; runs: Map<string, number> }> {
  const runs = new Map<string, number>();
  const run = ({ id }: { id: string }) => void runs.set(id, (runs.get(id) ?? 0) + 1);
  const root = { lease: { duration: '2s' } } as const;
  const app = await bootQueue(redis, { handlers: { '*': run }, root });
  const keys = new QueueKeys(redis.prefix, 'work');
  return { app, runs, forger: { admin: redis.admin, keys, key: (name) => keys.fixed[name] } };
}

/** Jobs that are added after the forged values. Each of them runs once. */
async function expectGoodJobs({ app, runs }: { app: QueueApp; runs: Map<string, number> }): Promise<void> {
  const jobs = Array.from({ length: GOOD }, (_, data) => ({ name: 'one', data }));
  const added = await app.queue.addBulk(jobs);
  const left = () => added.filter(({ id }) => !runs.has(id)).length;
  await until(() => left() === 0, { ...PATIENT, what: 'the good jobs run' });
  expect(added.map(({ id }) => runs.get(id))).toEqual(Array(GOOD).fill(1));
}

/** Pauses the queue, so that one claim takes forged values and good jobs together. */
async function forged(forge: (forger: Forger) => Promise<unknown>) {
  const started = await working();
  const { app, forger } = started;
  await app.queue.pause();
  await app.queue.addBulk(Array.from({ length: 5 }, (_, data) => ({ name: 'one', data })));
  await forge(forger);
  await app.queue.resume();
  await expectGoodJobs(started);
  return started;
}

const inLine =
  (id: string | Buffer, body: string | Buffer | null = BODY) =>
  async ({ admin, keys, key }: Forger) => {
    if (body !== null) await admin.hset(keys.bodies(String(id)), id, body);
    await admin.lpush(key('wait'), id);
  };

const dead = (app: QueueApp) => app.queue.dead.list({ limit: 50 });

describe('a job with an unreadable id is dead as corrupt, under a readable id, and reported once', () => {
  it.each<[string, string | Buffer, string | null]>([
    ['with a line break', 'a\nb', BODY],
    ['with a line break and no body', 'a\nb', null],
    ['of nothing but a line break', '\n', BODY],
    ['of two lines that repeat', 'a\na', BODY],
    ['that is empty', '', BODY],
    ['that is no UTF-8 and has a line break', GARBAGE, null],
  ])('%s', async (_, id, body) => {
    const { app } = await forged(inLine(id, body));
    await until(async () => (await app.queue.counts()).dead === 1, { ...PATIENT, what: 'it is dead' });
    const [job] = (await dead(app)).jobs;
    expect(job).toMatchObject({ reason: 'corrupt', id: expect.stringMatching(/^unreadable-[0-9a-f]{40}$/) });
    expect((await app.queue.counts()).active).toBe(0);
    const said = app.logs.complaints.filter((text) => text.includes('corrupt'));
    expect(said.length).toBeLessThanOrEqual(1);
  });

  it('also if the worker holds it', async () => {
    const { app, runs, forger } = await working();
    await app.queue.add('one', 0);
    await until(() => runs.size === 1, PATIENT);
    const [worker] = await redis.keys().then((all) => all.filter((key) => key.includes(':worker:')));
    await forger.admin.sadd(worker!.replace(':worker:', ':active:'), 'x\ny', GARBAGE, 'readable');
    await expectGoodJobs({ app, runs });
    await until(async () => (await app.queue.counts()).dead === 3, { ...PATIENT, what: 'they are dead' });
    expect((await app.queue.counts()).active).toBe(0);
  });

  it('does not run a job twice if its id is part of the unreadable one', async () => {
    const { app, forger, runs } = await working();
    await app.queue.pause();
    await app.queue.addBulk(['a', 'b'].map((id) => ({ name: 'one', data: 1, options: { id } })));
    await inLine('a\nb\na')(forger);
    await app.queue.resume();
    await until(() => runs.has('a') && runs.has('b'), { ...PATIENT, what: 'both run' });
    await expectGoodJobs({ app, runs });
    expect([runs.get('a'), runs.get('b')]).toEqual([1, 1]);
  });
});

describe('an unusual but readable id runs as any other', () => {
  it.each([
    ['with NUL', 'a\0b'],
    ['with a tab and a carriage return', 'a\tb\r'],
    ['of 300,000 characters', HUGE],
    ['with the sign for what is no UTF-8', 'a\ufffdb'],
  ])('%s', async (_, id) => {
    const { app, runs } = await forged(inLine(id));
    await until(async () => runs.has(id) && (await app.queue.counts()).active === 0, PATIENT);
    expect(runs.get(id)).toBe(1);
  });
});

describe('a body that cannot be read harms one job', () => {
  it.each<[string, string | Buffer | null]>([
    ['that is missing', null],
    ['that is empty', ''],
    ['that is binary', GARBAGE],
    ['that is huge', HUGE],
    ['of one line', 'one'],
    ['of line breaks', '\n\n\n\n\n'],
    ['with NUL between its lines', 'one\0\n1\n\n1'],
    ['with a time that is none', 'one\nnever\n\n1'],
    ['with options that are no JSON', 'one\n1\n{\n1'],
    ['with options that are a list', 'one\n1\n[1]\n1'],
    ['with options of other types', 'one\n1\n{"a":"x","t":-1,"b":7}\n1'],
    ['with a timeout beyond all timers', 'one\n1\n{"t":9007199254740991}\n1'],
    ['with a priority beyond all ranks', 'one\n1\n{"p":9007199254740991}\n1'],
    ['with data that are no JSON', 'one\n1\n\n{"a":'],
    ['with data of a prototype', 'one\n1\n\n{"__proto__":{"then":1}}'],
  ])('%s', async (_, body) => {
    const { app } = await forged(inLine('bad', body));
    await until(async () => (await app.queue.counts()).active === 0, PATIENT);
    expect((await app.queue.counts()).dead).toBeLessThanOrEqual(1);
  });
});

describe('a record that cannot be read does not stop a worker', () => {
  it.each<[string, (forger: Forger) => Promise<unknown>]>([
    [
      'an id in the line that is in no hash, a thousand times',
      ({ admin, key }) => admin.lpush(key('wait'), ...Array(1_000).fill('nobody')),
    ],
    [
      'a suspect with a line break',
      async ({ admin, key, keys }) => {
        await admin.hset(keys.bodies('s\ns'), 's\ns', BODY);
        await admin.rpush(key('suspects'), 's\ns');
      },
    ],
    [
      'a ranked job with a line break',
      async ({ admin, key, keys }) => {
        await admin.hset(keys.bodies('p\np'), 'p\np', BODY);
        await admin.zadd(key('prioritized'), 1, 'p\np');
      },
    ],
    [
      'a delayed job with a line break',
      async ({ admin, key, keys }) => {
        await admin.hset(keys.bodies('d\nd'), 'd\nd', BODY);
        await admin.zadd(key('delayed'), 1, 'd\nd');
      },
    ],
    ['a job that is due at the end of time', ({ admin, key }) => admin.zadd(key('delayed'), '+inf', 'late')],
    ['a job that was due before all time', ({ admin, key }) => admin.zadd(key('delayed'), '-inf', 'early')],
    ['a worker with a line break', ({ admin, key }) => admin.zadd(key('workers'), 1, 'evil\nworker')],
    ['a worker that is no UTF-8', ({ admin, key }) => admin.zadd(key('workers'), 1, GARBAGE)],
    ['a lease without end', ({ admin, key }) => admin.zadd(key('workers'), '+inf', 'evil')],
    ['a lease before all time', ({ admin, key }) => admin.zadd(key('workers'), '-inf', 'evil')],
    [
      'a schedule that is no JSON',
      async ({ admin, key }) => {
        await admin.hset(key('schedules'), 'evil', '{');
        await admin.zadd(key('upcoming'), 1, 'evil');
        await admin.zadd(key('scheduleOrder'), 1, 'evil');
      },
    ],
    [
      'a schedule with a line break and binary state',
      async ({ admin, key }) => {
        await admin.hset(key('schedules'), 'e\nv', GARBAGE);
        await admin.hset(key('firings'), 'e\nv', GARBAGE);
        await admin.zadd(key('upcoming'), 1, 'e\nv');
        await admin.zadd(key('scheduleOrder'), 1, 'e\nv');
      },
    ],
    [
      'a schedule since before all dates',
      async ({ admin, key }) => {
        const rule = '{"v":1,"rule":{"every":1000},"template":{"name":"one","data":1}}';
        await admin.hset(key('schedules'), 'evil', rule);
        await admin.zadd(key('upcoming'), -9e15, 'evil');
        await admin.zadd(key('scheduleOrder'), 1, 'evil');
      },
    ],
    [
      'a schedule at minus infinity',
      async ({ admin, key }) => {
        await admin.hset(key('schedules'), 'evil', GARBAGE);
        await admin.zadd(key('upcoming'), '-inf', 'evil');
      },
    ],
    [
      'declarations of nobody',
      async ({ admin, key }) => {
        await admin.zadd(key('declarers'), 1e15, 'evil', 9e15, 'a b c d', 1, 'x\ny z');
        await admin.hset(key('declaredSets'), 'd', GARBAGE);
      },
    ],
    [
      'a process that is no JSON',
      async ({ admin }) => {
        const { processes, processInfo } = processKeys(redis.prefix);
        await admin.zadd(processes, 9e15, 'evil', '+inf', 'x\ny');
        await admin.hset(processInfo, 'evil', GARBAGE, 'x\ny', '[]');
      },
    ],
    [
      'marks of cancelled jobs that nobody holds',
      ({ admin, key }) => admin.hset(key('toCancel'), 'x\ny', GARBAGE, '', HUGE),
    ],
    [
      'a bell that tells of something else',
      ({ admin, key }) => admin.zadd(key('doorbell'), 5, GARBAGE, 1, '', 2, 'x\ny'),
    ],
    [
      'a pause that is no time, taken back',
      async ({ admin, key }) => {
        await admin.hset(key('meta'), 'paused', GARBAGE);
      },
    ],
    [
      'a number of the last event that is none',
      ({ admin, key }) => admin.hset(key('meta'), 'events', 'many'),
    ],
    [
      'an event of other fields',
      ({ admin, key }) =>
        admin.xadd(key('events'), '*', GARBAGE, GARBAGE, 'completed', 'a\nb', 'n', 'x', 'at', 'never'),
    ],
  ])('%s', async (_, forge) => {
    const { app, runs } = await forged(forge);
    expect(runs.size).toBeGreaterThanOrEqual(GOOD);
    // Subscribers get the events that come next.
    const { id } = await app.queue.add('one', 0);
    await app.ended(id);
  });

  it('its own record of another type or with other fields', async () => {
    const started = await working();
    await started.app.queue.add('one', 0);
    await until(() => started.runs.size === 1, PATIENT);
    const [worker] = await redis.keys().then((all) => all.filter((key) => key.includes(':worker:')));
    await redis.admin.hset(worker!, 'seq', GARBAGE, 'gave', GARBAGE, 'lost', '\n\n', 'lease', 'long');
    await expectGoodJobs(started);
  });

  it('a bell of another type, once it is gone', async () => {
    const started = await working();
    const { app, forger, runs } = started;
    await forger.admin.set(forger.key('doorbell'), 'x');
    await expect(app.queue.add('one', 0)).rejects.toThrow(/WRONGTYPE/);
    await forger.admin.del(forger.key('doorbell'));
    expect(runs.size).toBe(0);
    await expectGoodJobs(started);
  });
});

describe('calls by people are answered if the workers of a queue have invalid names', () => {
  it.each([
    ['of bytes that are no text', GARBAGE],
    ['of several lines', 'a\nb'],
    ['of nothing', ''],
    ['with a space', 'a b'],
  ])('%s', async (_, name) => {
    const { app, forger } = await working();
    await forger.admin.zadd(forger.key('workers'), Date.now() + 60_000, name);
    const { queue } = app;
    const add = async () => (await queue.add('one', 1, { delay: '1h' })).id;
    expect(await queue.counts()).toMatchObject({ waiting: 0 });
    expect(await queue.get(await add())).toMatchObject({ state: 'delayed' });
    expect(await queue.cancel(await add())).toBe('cancelled');
    await queue.remove(await add());
    await queue.repair();
    expect((await queue.audit()).violations).toEqual([]);
    expect(await queue.pause()).toBe(true);
    await queue.resume();
    await queue.obliterate();
  });
});
