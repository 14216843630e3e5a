import { describe, expect, it } from 'vitest';
import { HandleBatch } from '#lib/decorators/handle-batch.decorator.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { Job } from '#lib/job/job.js';
import type { BatchOptions } from '#lib/options/worker-options.js';
import type { BatchMethod, JobBatch } from '#lib/worker/batches.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { bootFaults } from './fakes.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const KEPT = { defaults: { retention: '1m', attempts: 1 } } as const;

describe('batch handlers whose queues share slots', () => {
  /** Two queues, a method for the jobs `b` of both, and another one for the jobs `c`. */
  async function bootTwo(handle: BatchMethod, options: BatchOptions) {
    const calls: string[] = [];
    @Processor(['work', 'other'], { concurrency: 5 })
    class Two {
      @HandleBatch('b', options)
      b(jobs: Job<any>[], batch: JobBatch<any>) {
        calls.push(jobs.map(({ queue, data }) => `${queue} ${data}`).join());
        return handle(jobs, batch);
      }
      @HandleBatch('c', options)
      c(jobs: Job<any>[], batch: JobBatch<any>) {
        return this.b(jobs, batch);
      }
    }
    const app = await bootQueue(redis, {
      providers: [Two],
      queue: KEPT,
      queues: [{ name: 'other', ...KEPT }],
    });
    const other = app.queueOf('other');
    const active = async () => (await app.queue.counts()).active + (await other.counts()).active;
    return { ...app, other, calls, active };
  }

  it.each<[string, BatchMethod]>([
    ['completes', (jobs, batch) => jobs.forEach((job) => batch.complete(job, job.queue))],
    ['returns a map', (jobs) => new Map(jobs.map((job) => [job, job.queue]))],
  ])('tell jobs with the same id apart, if it %s', async (_, handle) => {
    const { queue, other } = await bootTwo(handle, { size: 2, timeout: '1h' });
    await queue.add('b', 0, { id: 'x' });
    await other.add('b', 0, { id: 'x' });
    const endOf = (one: typeof queue) =>
      until(async () => {
        const job = await one.get('x');
        return job?.endedAt && (job.result ?? job.failure?.message);
      }, PATIENT);
    expect([await endOf(queue), await endOf(other)]).toEqual(['work', 'other']);
  });

  it('do not wait once jobs that wait have all slots', async () => {
    const { queue, other, calls, active } = await bootTwo(() => undefined, { size: 5, timeout: '1h' });
    await other.addBulk([1, 2].map((data) => ({ name: 'b', data })));
    await until(async () => (await active()) === 2, PATIENT);
    await queue.addBulk([3, 4, 5].map((data) => ({ name: 'c', data })));
    await until(() => calls.length > 0, PATIENT);
    expect(calls).toEqual(['work 3,work 4,work 5']);
  });

  it('do not wait once setConcurrency leaves no slot, for any of the queues', async () => {
    const { runtime, other, calls, active } = await bootTwo(() => undefined, { size: 5, timeout: '1h' });
    await other.addBulk([1, 2].map((data) => ({ name: 'b', data })));
    await until(async () => (await active()) === 2, PATIENT);
    runtime.setConcurrency('work', 2);
    await until(() => calls.length > 0, PATIENT);
    expect(calls).toEqual(['other 1,other 2']);
  });
});

it('the age of the longest run does not count the time in which a job waits for a batch', async () => {
  const hold = latch();
  let begunAt = Infinity;
  const batches: number[] = [];
  @Processor('work', { concurrency: 5 })
  class Mixed {
    @HandleBatch('b', { size: 2, timeout: '1h' })
    async batch(jobs: Job[]) {
      batches.push(jobs.length);
      await hold.promise;
    }
    @Handle('one')
    async one() {
      begunAt = performance.now();
      await hold.promise;
    }
  }
  const { queue, runtime } = await bootQueue(redis, { providers: [Mixed], watch: false });
  await queue.add('b', null);
  await until(async () => (await queue.counts()).active === 1, PATIENT);
  await queue.add('one', null);
  await until(() => begunAt < Infinity, PATIENT);
  await queue.add('b', null);
  await until(() => batches.length > 0, PATIENT);
  const age = performance.now() - begunAt;
  expect(runtime.load[0]!.oldestMs).toBeGreaterThanOrEqual(age);
  hold.open();
});

describe('batches by group', () => {
  async function bootGroups(options: Omit<BatchOptions, 'by'>, concurrency: number) {
    const calls: (string | null)[][] = [];
    @Processor('work', { concurrency })
    class ByGroup {
      @HandleBatch('b', { ...options, by: 'group' })
      b(jobs: Job<any>[]) {
        calls.push(jobs.map(({ group }) => group));
      }
    }
    const app = await bootQueue(redis, { providers: [ByGroup], queue: KEPT });
    const add = (groups: readonly (string | undefined)[]) =>
      app.queue.addBulk(groups.map((group) => ({ name: 'b', data: null, options: { group } })));
    return { ...app, calls, add };
  }

  it('have the jobs of one group, or jobs without a group', async () => {
    const { calls, add } = await bootGroups({ size: 3, timeout: '1h' }, 10);
    await add(['a', 'b', undefined, 'a', 'b', undefined]);
    await add(['b', undefined]);
    const sorted = () => calls.toSorted((a, b) => `${a[0]}`.localeCompare(`${b[0]}`));
    await until(() => calls.length === 2, PATIENT);
    expect(sorted()).toEqual([Array(3).fill('b'), Array(3).fill(null)]);
    await add(['a']);
    await until(() => calls.length === 3, PATIENT);
    expect(sorted()[0]).toEqual(['a', 'a', 'a']);
  });

  it('wait for each group separately', async () => {
    const { calls, add, queue } = await bootGroups({ size: 5, minSize: 2, timeout: 2_000 }, 10);
    await add(['a', 'b', 'b']);
    await until(() => calls.length === 1, PATIENT);
    expect(calls).toEqual([['b', 'b']]);
    await until(async () => (await queue.counts()).active === 1, PATIENT);
    await until(() => calls.length === 2, PATIENT);
    expect(calls[1]).toEqual(['a']);
  });

  it('take several jobs of a group at its turn, although many groups wait', async () => {
    const { calls, add, queue } = await bootGroups({ size: 4 }, 16);
    await queue.pause();
    const groups = Array.from({ length: 40 }, (_, i) => `g${i}`);
    for (let i = 0; i < 8; i++) await add(groups);
    await queue.resume();
    await until(() => calls.flat().length === 320, PATIENT);
    expect(calls.filter((call) => new Set(call).size > 1)).toEqual([]);
    // One job of each group at a time would be 320 calls.
    expect(calls.length).toBeLessThan(160);
  });
});

it('refuses batches that a rate of the code never lets fill before their timeout', async () => {
  @Processor('work', { concurrency: 100 })
  class Rated {
    @HandleBatch('sliding', { size: 50, minSize: 31, timeout: '20s' })
    sliding(_: Job[]) {}
    @HandleBatch('fits', { size: 50, minSize: 30, timeout: '20s' })
    fits(_: Job[]) {}
    @HandleBatch('fixed', { size: 50, minSize: 4 })
    fixed(_: Job[]) {}
  }
  @Processor('groups', { concurrency: 100 })
  class Grouped {
    @HandleBatch('bucket', { size: 50, timeout: '5s', by: 'group' })
    bucket(_: Job[]) {}
    @HandleBatch('any', { size: 50, timeout: '5s' })
    any(_: Job[]) {}
  }
  const per = '10s';
  const found = await bootFaults({
    imports: [
      QueueModule.forRoot({ limits: { api: { rate: { max: 5, per, window: 'bucket', burst: 40 } } } }),
      QueueModule.registerQueue(
        {
          name: 'work',
          limits: { rate: { max: 10, per }, names: { fixed: { rate: { max: 2, per, window: 'fixed' } } } },
        },
        { name: 'groups', groups: { rate: { max: 6, per, burst: 20 } }, uses: ['api'] },
      ),
    ],
    providers: [Rated, Grouped],
  });
  const fault = (place: string, min: number, limit: string, most: number, ms: number) =>
    `${place} waits for batches of at least ${min} jobs, but ${limit} lets at most ${most} start in its timeout of ${ms} ms, ` +
    `so each batch would wait for it; set minSize to at most ${most}, or a longer timeout`;
  expect(found).toEqual([
    fault('Rated.sliding', 31, "limits.rate of queue 'work'", 30, 20_000),
    fault('Rated.fixed', 4, "limits.names.fixed.rate of queue 'work'", 3, 1_000),
    fault('Grouped.bucket', 50, 'limits.api.rate of forRoot()', 42, 5_000),
    fault('Grouped.bucket', 50, "groups.rate of queue 'groups'", 23, 5_000),
    fault('Grouped.any', 50, 'limits.api.rate of forRoot()', 42, 5_000),
  ]);
});
