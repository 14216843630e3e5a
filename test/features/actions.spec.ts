import { describe, expect, it } from 'vitest';
import {
  InvalidJobNameError,
  InvalidOptionError,
  type JobFailedError,
  Queue,
  QueueInspector,
  QueueModule,
  getQueueToken,
} from '#lib/index.js';
import { BulkActs } from '#lib/producer/bulk-act-runs.js';
import { DeadJobs } from '#lib/producer/dead-jobs.js';
import { QueueGroup, QueueLimits, SharedLimit } from '#lib/producer/queue-limits.js';
import { Schedules } from '#lib/producer/schedules.js';
import { createInspector, type InspectorOptions } from '#lib/subpaths/inspector.js';
import { ProcessOrders } from '#lib/inspect/process-orders.js';
import { processKeys } from '#lib/engine/keys.js';
import { bootApp } from '../support/app.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const server = useServer();

const inspect = (options: InspectorOptions = {}) => {
  const inspector = createInspector({ connection: redis.url, prefix: redis.prefix, ...options });
  atEnd(() => inspector.close());
  return inspector;
};

/** Actions as short texts, the oldest first. */
const told = async (inspector: QueueInspector, options = {}) =>
  (await inspector.actions(options)).actions
    .toReversed()
    .map(({ actor, action, queue, target, count, result }) =>
      [actor, action, queue, target, count, result].join('|'),
    );

/** Methods that change nothing in Redis, and those that are not called by users. */
const READS: Readonly<Record<string, string>> = {
  Queue: 'addDefined audit checkAdd constructor counts enqueuer get groups isPaused jobs stats',
  Schedules: 'checkUpsert constructor count find get history list made nextRuns preview read upserted',
  BulkActs: 'begin constructor for get list matchOf prune put read totalOf',
  DeadJobs: 'constructor list refuse retryFound',
  QueueLimits: 'constructor holding list listShared',
  SharedLimit: 'constructor state',
  QueueGroup: 'constructor state',
  ProcessOrders: 'constructor give',
};

describe.each(['redis', 'memory'] as const)('what an actor does (%s)', (kind) => {
  const boot = () =>
    bootQueue(redis, { watch: false, ...(kind === 'memory' && { root: { connection: 'memory' } }) });

  it('is recorded: actor, action, target, number of jobs and result', async () => {
    const { queue, get } = await boot();
    const ada = queue.as('ada');
    const { id } = await ada.add('one', { secret: 'canary' });
    await ada.add('one', null, { id: 'own', delay: '1h' });
    await ada.add('one', null, { id: 'own' });
    await ada.addBulk([
      { name: 'two', data: null, options: { id: 'b1', delay: '1h' } },
      { name: 'two', data: null, options: { id: 'own' } },
    ]);
    await ada.update('own', { data: 'canary' });
    await ada.promote('own');
    await ada.cancel('nobody');
    await expect(ada.remove('nobody')).rejects.toMatchObject({ code: 'GODWIT_JOB_NOT_FOUND' });
    await ada.pause();
    await ada.pause();
    await ada.resume();
    await ada.repair();
    await ada.publish('imported', 'canary');
    expect(await told(get(QueueInspector))).toEqual([
      `ada|job.add|work|${id}|1|ok`,
      'ada|job.add|work|own|1|ok',
      'ada|job.add|work|own|0|ok',
      'ada|job.add|work||1|ok',
      'ada|job.update|work|own|1|ok',
      'ada|job.promote|work|own|1|ok',
      'ada|job.cancel|work|nobody|0|ok',
      'ada|job.remove|work|nobody||GODWIT_JOB_NOT_FOUND',
      'ada|queue.pause|work||1|ok',
      'ada|queue.pause|work||0|ok',
      'ada|queue.resume|work||1|ok',
      'ada|queue.repair|work||0|ok',
      'ada|queue.publish|work|imported|1|ok',
    ]);
    expect(await queue.get('own')).toMatchObject({ data: 'canary', state: 'waiting' });
  });

  it('is recorded with the id of the job that a caller waits for, also if its run fails', async () => {
    const { queue, get } = await bootQueue(redis, {
      watch: false,
      handlers: {
        works: () => 'canary',
        fails: () => Promise.reject(new Error('no luck')),
      },
      queue: { defaults: { retention: '1h', attempts: 1 } },
      ...(kind === 'memory' && { root: { connection: 'memory' } }),
    });
    const ada = queue.as('ada');
    expect(await ada.addAndWait('works', null)).toBe('canary');
    const { id } = await ada.addAndWait('works', null, { detail: true });
    await ada.addAndWait('works', null, { id: 'own' });
    await ada.addAndWait('works', null, { id: 'own' });
    const failed = await ada.addAndWait('fails', null).catch((error: JobFailedError) => error.jobId);
    await ada.addAndWait('works', null, { delay: 1, unique: {} } as never).catch(() => null);
    const { jobs } = await queue.jobs({ state: 'completed' });
    const first = jobs.find((job) => job.id !== id && job.id !== 'own')!;
    expect(await told(get(QueueInspector))).toEqual([
      `ada|job.add|work|${first.id}|1|ok`,
      `ada|job.add|work|${id}|1|ok`,
      'ada|job.add|work|own|1|ok',
      'ada|job.add|work|own|0|ok',
      `ada|job.add|work|${String(failed)}|1|ok`,
      'ada|job.add|work|works||GODWIT_INVALID_OPTION',
    ]);
  });

  it('is recorded with 0 jobs if the queue is full and drops them', async () => {
    const { queue, get } = await bootQueue(redis, {
      watch: false,
      queue: { maxWaiting: { limit: 1, onFull: 'dropNew' } },
      ...(kind === 'memory' && { root: { connection: 'memory' } }),
    });
    const ada = queue.as('ada');
    await ada.add('one', null, { id: 'a' });
    await ada.add('one', null, { id: 'b' });
    await ada.addBulk([{ name: 'one', data: null }]);
    expect(await told(get(QueueInspector))).toEqual([
      'ada|job.add|work|a|1|ok',
      'ada|job.add|work|b|0|ok',
      'ada|job.add|work||0|ok',
    ]);
  });

  it('is recorded at its start too if it is by a filter, without values of data', async () => {
    const { queue, get } = await boot();
    for (const tenant of ['canary', 'canary', 'other']) await queue.add('one', { tenant });
    const bob = queue.as('bob');
    expect(await bob.remove({ state: 'waiting', where: { tenant: 'canary' }, limit: 5 })).toBe(2);
    expect(await bob.dead.retry({ newerThan: '1h' }, { rate: { max: 10, per: '1s' } })).toBe(0);
    await expect(bob.cancel({ data: 'canary' } as never)).rejects.toMatchObject({
      code: 'GODWIT_INVALID_OPTION',
    });
    const removed = '{"state":"waiting","limit":5,"where":["tenant"]}';
    expect(await told(get(QueueInspector))).toEqual([
      `bob|job.remove|work|${removed}||started`,
      `bob|job.remove|work|${removed}|2|ok`,
      'bob|job.retry|work|{"newerThan":"1h"}||started',
      'bob|job.retry|work|{"newerThan":"1h"}|0|ok',
      'bob|job.cancel|work|{}||started',
      'bob|job.cancel|work|{}||GODWIT_INVALID_OPTION',
    ]);
  });

  it('is recorded with all names of a filter, and refused like any call if they are wrong', async () => {
    const { queue, get } = await boot();
    const ada = queue.as('ada');
    await ada.remove({ state: 'dead', name: ['one', 'two'] });
    const wrong = ada.remove({ state: 'dead', name: ['one', Symbol('two')] } as never);
    await expect(wrong).rejects.toThrow(InvalidJobNameError);
    const entries = await told(get(QueueInspector));
    expect(entries[0]).toBe('ada|job.remove|work|{"state":"dead","name":"one, two"}||started');
    expect(entries.at(-1)).toContain('{"state":"dead","name":"one"}');
  });

  it('is recorded of schedules, dead jobs, limits and groups', async () => {
    const { queue, get } = await boot();
    const { schedules, dead, limits, ...ada } = handlesOf(queue.as('ada'));
    await schedules.upsert('s', { every: '1h' }, { name: 'one', data: 'canary' });
    await schedules.upsert('s', { every: '1h' }, { name: 'one', data: 'canary' });
    await schedules.pause('s');
    await schedules.resume('s');
    const { id } = await schedules.runNow('s');
    await schedules.remove('s');
    await expect(dead.retry(id)).rejects.toMatchObject({ code: 'GODWIT_WRONG_STATE' });
    await limits.set({ concurrency: 2 }, { name: 'one' });
    await limits.hold('30s');
    await limits.release();
    await limits.clear({ name: 'one' });
    await limits.shared('api').set({ rate: { max: 1, per: '1s' } }, { create: true });
    await ada.group('t7').pause();
    await ada.group('t7').set({ weight: 2, rate: null });
    const wrong = { weight: 3, note: 'canary', rate: { max: 1, per: '1s', note: 'canary' } };
    await expect(ada.group('t7').set(wrong as never)).rejects.toThrow(InvalidOptionError);
    expect(await told(get(QueueInspector), { queue: 'work' })).toEqual([
      'ada|schedule.upsert|work|s|1|ok',
      'ada|schedule.upsert|work|s|0|ok',
      'ada|schedule.pause|work|s|1|ok',
      'ada|schedule.resume|work|s|1|ok',
      `ada|schedule.run|work|s|1|ok`,
      'ada|schedule.remove|work|s|1|ok',
      `ada|job.retry|work|${id}||GODWIT_WRONG_STATE`,
      'ada|limit.set|work|name one {"concurrency":2}|1|ok',
      'ada|limit.hold|work|30s|1|ok',
      'ada|limit.release|work||1|ok',
      'ada|limit.clear|work|name one|1|ok',
      'ada|limit.set|work|shared api {"rate":{"max":1,"per":"1s"}}|1|ok',
      'ada|group.pause|work|t7|1|ok',
      'ada|group.set|work|t7 {"weight":2,"rate":null}|1|ok',
      'ada|group.set|work|t7 {"weight":3,"rate":{"max":1,"per":"1s"}}||GODWIT_INVALID_OPTION',
    ]);
    expect(await queue.limits.list()).toMatchObject([{ of: 'queue' }]);
  });

  it('has no entry without an actor, and only one for a call that makes further calls', async () => {
    const { queue, get } = await boot();
    const { id } = await queue.add('one', null, { retention: '1h' });
    await queue.pause();
    await queue.cancel(id);
    expect(await told(get(QueueInspector))).toEqual([]);
    await queue.add('one', null, { id: 'kept', retention: { cancelled: '1h' } });
    await queue.cancel('kept');
    const both = queue.as('ada').as('bob');
    expect(both).toBeInstanceOf(Queue);
    await both.retry('kept');
    expect(await told(get(QueueInspector))).toEqual(['bob|job.retry|work|kept|1|ok']);
  });
});

describe('the list of actions', () => {
  it('has pages, by actor and by queue, by the clock of Redis', async () => {
    const { queue, queueOf, get } = await bootQueue(redis, { watch: false, queues: [{ name: 'other' }] });
    const [seconds] = await redis.admin.time();
    for (const actor of ['ada', 'bob', 'ada']) await queue.as(actor).pause();
    await queueOf('other').as('ada').pause();
    const inspector = get(QueueInspector);
    const first = await inspector.actions({ limit: 3 });
    expect(first.actions.map(({ queue: of, actor }) => `${of} ${actor}`)).toEqual([
      'other ada',
      'work ada',
      'work bob',
    ]);
    expect(first.actions[0]!.at.getTime()).toBeGreaterThanOrEqual(Number(seconds) * 1_000);
    const second = await inspector.actions({ limit: 3, cursor: first.cursor! });
    expect([second.actions.length, second.cursor]).toEqual([1, null]);
    expect(await told(inspector, { actor: 'ada', queue: 'work' })).toHaveLength(2);
    await expect(inspector.actions({ cursor: 'made up' })).rejects.toThrow(
      'actions().cursor must be the cursor of a previous page',
    );
    for (const wrong of [{ limit: 0 }, { actor: '' }, { queue: 'a b' }, { actr: 'ada' }])
      await expect(inspector.actions(wrong as never)).rejects.toMatchObject({
        code: expect.stringMatching(/^GODWIT_INVALID/),
      });
  });

  it('merges those of all configurations', async () => {
    const { get } = await bootApp({
      imports: [
        QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix }),
        QueueModule.forRoot('other', { connection: server.url, prefix: redis.prefix }),
        QueueModule.registerQueue({ name: 'here' }, { name: 'there', configKey: 'other' }),
      ],
    });
    const [here, there] = ['here', 'there'].map((name) => get<Queue>(getQueueToken(name)).as('ada'));
    for (let i = 0; i < 3; i++) {
      await here!.add('one', null, { id: `h${i}` });
      await there!.add('one', null, { id: `t${i}` });
    }
    const inspector = get(QueueInspector);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page = await inspector.actions({ limit: 2, ...(cursor !== null && { cursor }) });
      seen.push(...page.actions.map(({ target }) => target));
      ({ cursor } = page);
    } while (cursor !== null);
    expect(seen.toSorted()).toEqual(['h0', 'h1', 'h2', 't0', 't1', 't2']);
    const ofOne = (letter: string) => seen.filter((id) => id.startsWith(letter));
    expect([ofOne('h'), ofOne('t')]).toEqual([
      ['h2', 'h1', 'h0'],
      ['t2', 't1', 't0'],
    ]);
  });

  it('leaves out what another program wrote', async () => {
    const inspector = inspect({ actor: 'ada' });
    const { actions: key } = processKeys(redis.prefix);
    await redis.admin.xadd(key, '*', 'foreign', 'entry');
    await inspector.queue('work').pause();
    await redis.admin.xadd(key, '*', 'actor', 'eve', 'action', 'x', 'result', 'ok', 'count', 'many');
    expect(await told(inspector)).toEqual(['ada|queue.pause|work||1|ok', 'eve|x||||ok']);
  });
});

describe('createInspector with an actor', () => {
  it('records what is done through it, orders to processes too', async () => {
    const { runtime, logs } = await bootQueue(redis, {
      handlers: { one: () => 1 },
      watch: false,
      root: { lease: { duration: '1s' } },
    });
    const inspector = inspect({ actor: 'ada' });
    const queue = inspector.queue('work');
    expect(inspector.queue('work')).toBe(queue);
    await queue.pause();
    await inspector.producer.queue('work').resume();
    await until(async () => (await inspector.workers()).length === 1, PATIENT);
    const [{ host, pid } = { host: '', pid: 0 }] = await inspector.workers();
    await inspector.processes.pause({ process: `${host}:${pid}` });
    await until(() => runtime.workers[0]!.state === 'paused', PATIENT);
    await until(() => logs.lines.some(({ text }) => text.includes('ada')), PATIENT);
    await inspector.processes.resume({ host, queue: 'work', by: 'deploy' });
    await until(() => runtime.workers[0]!.state === 'running', PATIENT);
    await expect(inspector.processes.quiet({ process: 'nobody:1' })).rejects.toThrow('nobody:1');
    expect(await told(inspector)).toEqual([
      'ada|queue.pause|work||1|ok',
      `ada|process.pause||${host}:${pid}|1|ok`,
      `ada|process.resume|work|${host}|1|ok`,
      'ada|process.quiet||nobody:1||GODWIT_PROCESS_NOT_FOUND',
    ]);
  });

  it('records nothing without one', async () => {
    const inspector = inspect();
    await inspector.queue('work').pause();
    expect((await inspector.actions()).actions).toEqual([]);
    expect(await redis.admin.exists(processKeys(redis.prefix).actions)).toBe(0);
  });

  it('refuses a wrong one', () => {
    for (const actor of ['', 5, 'a\nb', 'x'.repeat(257)])
      expect(() => createInspector({ actor: actor as never })).toThrow(
        /createInspector\(\)\.actor must be 1 to 256 bytes of well-formed text/,
      );
    expect(() => createInspector({ actr: 'ada' } as never)).toThrow(/createInspector\(\)\.actr.*actor/);
  });
});

it('does what was asked although it cannot be recorded, and logs the entry', async () => {
  const { queue, logs } = await bootQueue(redis, { watch: false });
  await redis.admin.set(processKeys(redis.prefix).actions, 'of another program');
  expect(await queue.as('ada').pause()).toBe(true);
  expect(logs.complaints.join()).toMatch(
    /an action could not be recorded: "ada" did queue\.pause in queue 'work' \(ok\): .*WRONGTYPE/,
  );
});

it('cuts texts that are too long', async () => {
  const inspector = inspect({ actor: 'ada' });
  await inspector
    .queue('work')
    .remove('x'.repeat(5_000))
    .catch(() => undefined);
  const { actions } = await inspector.actions();
  expect(actions[0]).toMatchObject({ target: 'x'.repeat(500), result: 'GODWIT_INVALID_JOB_ID' });
});

it('every method that changes something is recorded', () => {
  const inspector = inspect({ actor: 'ada' });
  const queue = inspector.queue('work');
  const handles: Record<string, [handle: object, base: { prototype: object }]> = {
    Queue: [queue, Queue],
    Schedules: [queue.schedules, Schedules],
    BulkActs: [queue.bulkActs, BulkActs],
    DeadJobs: [queue.dead, DeadJobs],
    QueueLimits: [queue.limits, QueueLimits],
    SharedLimit: [queue.limits.shared('api'), SharedLimit],
    QueueGroup: [queue.group('t7'), QueueGroup],
    ProcessOrders: [inspector.processes, ProcessOrders],
  };
  for (const [name, [handle, { prototype }]] of Object.entries(handles)) {
    const own = Object.getOwnPropertyNames(handle);
    const others = Object.getOwnPropertyNames(prototype).filter((method) => !own.includes(method));
    const advice =
      'a method that changes something is in lib/producer/recorded-queue.ts, all others in READS';
    expect(others.toSorted().join(' '), `${name}: ${advice}`).toBe(READS[name]);
  }
});

function handlesOf(queue: Queue) {
  const { schedules, dead, limits } = queue;
  return { schedules, dead, limits, group: (name: string) => queue.group(name) };
}
