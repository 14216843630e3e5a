import { expect, it, vi } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { HandleBatch } from '#lib/decorators/handle-batch.decorator.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { RateLimited, type Job } from '#lib/job/job.js';
import { RULES } from '#lib/job/rules.js';
import type { Queue } from '#lib/producer/queue.js';
import { createProducer } from '#lib/subpaths/standalone.js';
import type { JobBatch } from '#lib/worker/batches.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

/** Adds jobs that expire before a worker can start them. */
async function addExpiring(queue: Queue, count: number, options: { group?: string } = {}) {
  const job = (data: string, more = {}) => ({ name: 'job', data, options: { ...options, ...more } });
  await queue.addBulk(Array.from({ length: count }, () => job('late', { expiresIn: 1 })));
  const added = Date.now();
  await until(() => Date.now() > added + 5);
  return { job };
}

it('a rate counts no job whose handler is not called: it has expired, or no handler has its name', async () => {
  const limits = { rate: { max: 2, per: '1h' } } as const;
  const run: unknown[] = [];
  const { queue, said } = await bootQueue(redis, {
    root: { limits: { api: limits } },
    queue: { limits, uses: ['api'] },
    handlers: { job: ({ data }: Job) => void run.push(data) },
    concurrency: 1,
  });
  await queue.addBulk(Array.from({ length: 3 }, () => ({ name: 'new', data: null })));
  await said.take(3, ({ type }) => type === 'delayed', PATIENT);
  await queue.pause();
  const { job } = await addExpiring(queue, 5);
  await queue.addBulk([job('first'), job('second'), job('too many')]);
  await queue.resume();
  await said.take(5, ({ type }) => type === 'dead', PATIENT);
  await said.take(2, ({ type }) => type === 'completed', PATIENT);
  expect(run).toEqual(['first', 'second']);
});

it('a rate counts no job that its worker gives back before it starts', async () => {
  const run: unknown[] = [];
  const { get, queue, runtime, said } = await bootQueue(redis, {
    root: { autoStart: false },
    queue: { limits: { rate: { max: 3, per: '1h' } } },
    handlers: { job: ({ data }: Job) => void run.push(data) },
  });
  const engine = get<QueueEngine>(QUEUE_ENGINE);
  const exchange = engine.exchange.bind(engine);
  engine.exchange = async (name, call) => {
    const answer = await exchange(name, call);
    // The process pauses while the answer that brings the jobs is on its way.
    if (answer.kind === 'exchanged' && answer.claimed.length > 0) runtime.pause();
    return answer;
  };
  await queue.addBulk([1, 2, 3].map((data) => ({ name: 'job', data })));
  await runtime.start();
  await said.take(3, ({ type }) => type === 'released', PATIENT);
  engine.exchange = exchange;
  runtime.resume();
  await said.take(3, ({ type }) => type === 'completed', PATIENT);
  expect(run).toEqual([1, 2, 3]);
});

it('a rate of a group counts no job that has expired', async () => {
  const run: unknown[] = [];
  const { queue, said } = await bootQueue(redis, {
    queue: { groups: { rate: { max: 1, per: '1h' } } },
    handlers: { job: ({ data }: Job) => void run.push(data) },
  });
  await queue.pause();
  const { job } = await addExpiring(queue, 3, { group: 'a' });
  await queue.addBulk([job('first'), job('too many')]);
  await queue.resume();
  await said.take(1, ({ type }) => type === 'completed', PATIENT);
  expect(run).toEqual(['first']);
  expect((await queue.counts()).dead).toBe(3);
});

it.each(['queue', 'group'] as const)(
  'no prefetched job starts in the worker whose handler held the %s with RateLimited',
  async (scope) => {
    let runs = 0;
    const { queue } = await bootQueue(redis, {
      concurrency: 1,
      queue: { events: false },
      watch: false,
      handlers: {
        job: () => {
          runs += 1;
          if (runs === 300) throw new RateLimited('1h', { scope });
        },
      },
    });
    const options = scope === 'group' ? { group: 'a' } : {};
    await queue.addBulk(Array.from({ length: 1_000 }, () => ({ name: 'job', data: null, options })));
    await until(() => runs >= 300, PATIENT);
    await until(async () => (await queue.counts()).active === 0, PATIENT);
    expect(runs).toBe(300);
    expect((await queue.counts()).waiting).toBe(701);
  },
);

it('the whole queue is held by RateLimited for the name of a job that has a group', async () => {
  const { queue, said } = await bootQueue(redis, {
    queue: { groups: {} },
    handlers: {
      job: () => {
        throw new RateLimited('1h', { scope: 'name' });
      },
    },
  });
  await queue.add('job', null, { group: 'a' });
  await said.take(1, ({ type }) => type === 'released', PATIENT);
  expect(await queue.limits.holding({ name: 'other', group: 'b' })).toMatchObject([
    { of: 'queue', reason: 'held' },
  ]);
});

it('the whole queue is held by RateLimited for a limit that it does not use, and one line warns of it', async () => {
  let left = 2;
  const { queue, said, logs } = await bootQueue(redis, {
    root: { limits: { api: { concurrency: 5 } } },
    queue: { uses: ['api'] },
    handlers: {
      job: () => {
        if (left-- > 0) throw new RateLimited(100, { limit: 'apis' });
      },
    },
  });
  const { id } = await queue.add('job', null);
  await said.take(1, ({ type }) => type === 'completed', PATIENT);
  expect(logs.lines.filter(({ text }) => text.includes('RateLimited with'))).toMatchObject([
    {
      level: 'warn',
      text: `job "${id}" of queue 'work': its handler threw RateLimited with the limit "apis", which is not in the option uses of this queue: instead of the limit, the whole queue is held`,
    },
  ]);
});

it.each(['redis', 'memory'] as const)(
  'the jobs of a batch are held by one call, for the longest time (%s)',
  async (kind) => {
    const sizes: number[] = [];
    @Processor('work', { concurrency: 10 })
    class Batcher {
      @HandleBatch('b', { size: 10 })
      run(jobs: Job[], batch: JobBatch): void {
        sizes.push(jobs.length);
        const [, second] = jobs.filter(({ group }) => group === 'a');
        batch.fail(second!, new RateLimited('2h', { scope: 'group' }));
        throw new RateLimited('1h', { scope: 'group' });
      }
    }
    const { get, queue, said } = await bootQueue(redis, {
      providers: [Batcher],
      queue: { groups: {} },
      ...(kind === 'memory' && { root: { connection: 'memory' } }),
    });
    const charge = vi.spyOn(get<QueueEngine>(QUEUE_ENGINE).limits, 'charge');
    const groups = ['a', 'a', 'a', 'a', 'b', 'b'];
    await queue.pause();
    await queue.addBulk(groups.map((group) => ({ name: 'b', data: null, options: { group } })));
    await queue.resume();
    await said.take(groups.length, ({ type }) => type === 'released', PATIENT);
    expect(sizes).toEqual([groups.length]);
    expect(charge.mock.calls).toHaveLength(1);
    expect(charge.mock.calls[0]![1].map(({ field }) => field).toSorted()).toEqual(['g:a', 'g:b']);
    const hours = async (of: string) => Math.ceil((await queue.group(of).state()).heldForMs / 3_600_000);
    expect([await hours('a'), await hours('b')]).toEqual([2, 1]);
    expect(await queue.counts()).toMatchObject({ waiting: groups.length });
  },
);

it('each of several changes that are made at once is kept', async () => {
  const { queue } = await bootQueue(redis, { queue: { groups: {} }, watch: false });
  const group = queue.group('a');
  await Promise.all([
    group.pause(),
    group.set({ concurrency: 5 }),
    group.set({ weight: 2 }),
    queue.limits.set({ concurrency: 7 }),
    queue.limits.set({ rate: { max: 1, per: '1s' } }),
  ]);
  expect(await group.state()).toMatchObject({ paused: true, concurrency: 5, weight: 2 });
  expect(await queue.limits.list()).toMatchObject([{ of: 'queue', concurrency: 7, rate: { max: 1 } }]);
});

it('a shared limit that neither the code nor Redis has is refused, except to create it', async () => {
  const rate = { max: 100, per: '1m' } as const;
  const { queue } = await bootQueue(redis, {
    root: { limits: { api: { rate }, mail: { rate } } },
    queue: { uses: ['api'] },
    handlers: { job: () => undefined },
  });
  await until(async () => (await queue.limits.listShared()).length === 1, PATIENT);
  const { shared } = unknowing();
  await shared('api').set({ concurrency: 2 });
  await shared('api').hold('1h');
  expect(await queue.limits.shared('api').state()).toMatchObject({ concurrency: 2, isLive: true });
  // No queue uses it yet, so it is only in the code of this process.
  await expect(shared('mail').set({ concurrency: 1 })).rejects.toThrow(
    `limits.shared() must be one of the shared limits: 'api', got "mail"`,
  );
  await queue.limits.shared('mail').set({ concurrency: 1 });
  const wrong = queue.limits.shared('apy');
  for (const act of [() => wrong.set({ concurrency: 1 }), () => wrong.hold('1h')])
    await expect(act()).rejects.toThrow(
      `limits.shared() must be one of the shared limits: 'api', 'mail', got "apy"`,
    );
  expect((await queue.limits.listShared()).map(({ name }) => name)).not.toContain('apy');
  await wrong.set({ concurrency: 1 }, { create: true });
  await wrong.hold('1h');
  expect(await shared('apy').state()).toMatchObject({ concurrency: 1 });
});

/** The limits as a process sees them that has no options of the workers. */
function unknowing() {
  const producer = createProducer({ connection: redis.url, prefix: redis.prefix });
  atEnd(() => producer.close());
  const { limits } = producer.queue('work');
  return { shared: (name: string) => limits.shared(name) };
}

it('a hold may be as long as that of a handler', async () => {
  const { queue } = await bootQueue(redis, {
    root: { limits: { api: { concurrency: 1 } } },
    queue: { uses: ['api'] },
  });
  const longest = 315_576_000_000;
  expect(new RateLimited(longest).delayMs).toBe(longest);
  await queue.limits.hold('400d');
  await queue.limits.shared('api').hold(longest);
  expect((await queue.limits.list())[0]!.heldForMs).toBeGreaterThan(399 * 86_400_000);
  expect((await queue.limits.shared('api').state())!.heldForMs).toBeGreaterThan(longest - 60_000);
  await expect(queue.limits.hold(longest + 1)).rejects.toThrow('limits.hold() must be a duration');
});

it('the first job after a hold starts at once, and keeps its turn', async () => {
  const ran: unknown[] = [];
  const end = latch('the end of the first job');
  const job = async ({ group }: Job) => {
    ran.push(group);
    await end.promise;
  };
  const { queue, said } = await bootQueue(redis, {
    handlers: { job },
    queue: { limits: { concurrency: 1 }, groups: {} },
  });
  await queue.limits.hold('1h');
  const heldAt = Date.now();
  await queue.addBulk(['a', 'b'].map((group) => ({ name: 'job', data: null, options: { group } })));
  // The worker waits at the doorbell for longer than an answer lets jobs start.
  await until(() => Date.now() > heldAt + 2 * RULES.startMs);
  await queue.limits.release();
  await until(() => ran.length === 1, PATIENT);
  end.open();
  await said.take(2, ({ type }) => type === 'completed', PATIENT);
  expect(ran).toEqual(['a', 'b']);
  expect(said.values.filter(({ type }) => type === 'released')).toEqual([]);
});
