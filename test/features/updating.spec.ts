import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { JobNotFoundError, SchemaViolationError, UnrecoverableError, WrongStateError } from '#lib/errors.js';
import { defineJob, type JobOf } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, PATIENT, type Handlers } from '../support/queue-app.js';
import { gated, oneOfEach } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const welcome = defineJob('work', 'welcome', z.object({ to: z.string() }));

describe('queue.update', () => {
  it('changes data, time and priority of a job that waits or is delayed; it runs with them', async () => {
    const ran: unknown[] = [];
    const handlers: Handlers = { job: (job: Job) => void ran.push([job.id, job.data, job.attempts]) };
    const { queue, ended } = await bootQueue(redis, { handlers, concurrency: 1 });
    await queue.pause();
    await queue.add('job', 1, { id: 'a', delay: '1h', attempts: 7 });
    await queue.add('job', 1, { id: 'b', attempts: 7 });
    const before = Date.now();
    const later = await queue.update('b', { delay: '2h', priority: 4 });
    expect(later).toEqual({ id: 'b', state: 'delayed', dueAt: expect.any(Date) });
    expect(later.dueAt!.getTime()).toBeGreaterThan(before + 7_000_000);
    expect(await queue.get('b')).toMatchObject({
      state: 'delayed',
      priority: 4,
      attempts: 7,
      dueAt: later.dueAt,
    });
    expect(await queue.update('b', { runAt: new Date(0) })).toEqual({
      id: 'b',
      state: 'waiting',
      dueAt: null,
    });
    expect(await queue.update('a', { data: { n: 2 }, delay: -5 })).toMatchObject({ state: 'waiting' });
    await queue.resume();
    await Promise.all([ended('a'), ended('b')]);
    expect(ran).toEqual([
      ['a', { n: 2 }, 7],
      ['b', 1, 7],
    ]);
  });

  it('is refused for a job that runs or has ended, with its state, and for one that does not exist', async () => {
    const { gate, handlers } = gated();
    const { queue } = await bootQueue(redis, { handlers });
    await oneOfEach(queue);
    for (const state of ['active', 'completed', 'dead']) {
      const refused = await queue.update(state, { data: 1, delay: 5, priority: 2 }).catch((error) => error);
      expect(refused).toBeInstanceOf(WrongStateError);
      expect(refused).toMatchObject({ state, message: expect.stringContaining(`is ${state}; `) });
    }
    await expect(queue.update('nobody', { data: 1 })).rejects.toBeInstanceOf(JobNotFoundError);
    await expect(queue.update('nobody', { delay: 1 })).rejects.toBeInstanceOf(JobNotFoundError);
    gate.open();
  });

  it('checks the data by the schema of a definition, and that the job has its name', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add(welcome, { to: 'ada' }, { id: 'a', delay: '1h' });
    await queue.add('other', 1, { id: 'b', delay: '1h' });
    await queue.update(welcome, 'a', { data: { to: 'eva' } });
    expect((await queue.get('a'))?.data).toEqual({ to: 'eva' });
    const wrong = queue.update(welcome, 'a', { data: { to: 5 } as never });
    await expect(wrong).rejects.toBeInstanceOf(SchemaViolationError);
    await expect(queue.update(welcome, 'b', { data: { to: 'eva' } })).rejects.toThrow(
      `job "b" in queue 'work' is not a "welcome" job`,
    );
    expect((await queue.get('b'))?.data).toBe(1);
  });

  it('is refused at once for invalid values, and changes nothing', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add('job', 1, { id: 'a', delay: '1h' });
    const before = await queue.get('a');
    for (const [changes, message] of [
      [{}, 'update().changes must be an object with data, delay, runAt or priority'],
      [undefined, 'update().changes must be an object'],
      [
        { attempts: 3 },
        'update().changes.attempts is not an option; it is an option of a job: set it in add() or @Handle()',
      ],
      [{ delay: 'soon' }, 'update().changes.delay must be a duration'],
      [
        { delay: 1, runAt: new Date(1) },
        'update().changes.runAt must be left out if delay is given, got "1970-01-01T00:00:00.001Z" (Date)',
      ],
      [{ priority: -1 }, 'update().changes.priority must be an integer from 0 to 2097151'],
      [{ data: { n: 5n } }, 'update().changes.data.n is a BigInt'],
    ] as const)
      await expect(queue.update('a', changes as never)).rejects.toThrow(message);
    await expect(queue.update('a\nb', { data: 1 })).rejects.toMatchObject({ code: 'GODWIT_INVALID_JOB_ID' });
    expect(await queue.get('a')).toEqual(before);
  });
});

describe('job.update', () => {
  it('is visible to this attempt, the next one and lists, and is reported by an event', async () => {
    const seen: unknown[] = [];
    const handlers: Handlers = {
      job: async (job: Job<{ step: number; of: string }>) => {
        seen.push(job.data);
        if (job.data.step === 1) {
          await job.update({ ...job.data, step: 2 });
          seen.push(job.data);
          throw new Error('later');
        }
      },
    };
    const defaults = { backoff: 0, retention: '1h' } as const;
    const { queue, said, ended } = await bootQueue(redis, { handlers, queue: { defaults } });
    await queue.add('job', { step: 1, of: 'x' }, { id: 'a' });
    await ended('a');
    const changed = { step: 2, of: 'x' };
    expect(seen).toEqual([{ step: 1, of: 'x' }, changed, changed]);
    expect((await queue.jobs({ state: 'completed' })).jobs).toMatchObject([{ id: 'a', data: changed }]);
    expect(said.values.filter(({ type }) => type === 'updated')).toMatchObject([{ jobId: 'a', name: 'job' }]);
  });

  it('takes the input of a schema; job.data is then its output, in this attempt and the next', async () => {
    const step = defineJob('work', 'step', z.object({ at: z.string().transform(Number) }));
    const seen: unknown[] = [];
    @Processor(step)
    class Steps {
      @Handle(step)
      async run(job: JobOf<typeof step>) {
        seen.push(job.data);
        const isCollected = Array.isArray(job.data);
        if (seen.length > 1) return;
        const next = { at: '2' };
        await job.update(isCollected ? ([next, next] as never) : next);
        seen.push(job.data);
        throw new Error('later');
      }
    }
    const queue = { defaults: { backoff: 0 } };
    const app = await bootQueue(redis, { providers: [Steps], queue });
    const { id } = await app.producer.add(step, { at: '1' });
    await app.ended(id);
    expect(seen).toEqual([{ at: 1 }, { at: 2 }, { at: 2 }]);
    seen.length = 0;
    const aggregate = { key: 'k', maxDelay: 1 } as const;
    const collected = await app.producer.add(step, { at: '1' }, { aggregate });
    await app.ended(collected.id);
    expect(seen).toEqual([[{ at: 1 }], [{ at: 2 }, { at: 2 }], [{ at: 2 }, { at: 2 }]]);
  });

  it('rejects for data that JSON or the schema refuses, and once the run is over', async () => {
    const refused: unknown[] = [];
    const late: Job[] = [];
    const handlers: Handlers = {
      job: async (job: Job) => {
        refused.push(await job.update({ n: 5n }).catch((error) => error.message));
        // Nobody awaits these promises. Their rejections must not end the process.
        void job.update({ n: 5n });
        void job.charge(-1);
        late.push(job);
      },
    };
    const { queue, ended } = await bootQueue(redis, { handlers, queue: { defaults: { retention: '1h' } } });
    await queue.add('job', 1, { id: 'a' });
    await ended('a');
    expect(refused).toEqual([expect.stringContaining('update().n is a BigInt')]);
    await expect(late[0]!.update(2)).rejects.toMatchObject({ code: 'GODWIT_WRONG_STATE', state: 'over' });
    expect((await queue.get('a'))?.data).toBe(1);
  });
});

it('a dead job is retried with other data', async () => {
  const ran: unknown[] = [];
  const handlers: Handlers = {
    job: (job: Job) => {
      ran.push(job.data);
      if (job.data === null) throw new UnrecoverableError('no address');
    },
  };
  const { queue } = await bootQueue(redis, { handlers });
  await queue.add('job', null, { id: 'a' });
  await until(async () => (await queue.get('a'))?.state === 'dead', PATIENT);
  await expect(queue.dead.retry('a', { data: () => 1 })).rejects.toMatchObject({
    code: 'GODWIT_INVALID_PAYLOAD',
  });
  await expect(queue.dead.retry({} as never, { data: 1 })).rejects.toThrow('dead.retry().pace.data');
  await queue.dead.retry('a', { data: 'here' });
  await until(() => ran.length === 2, PATIENT);
  expect(ran).toEqual([null, 'here']);
});
