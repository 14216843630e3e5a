import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { InvalidOptionError, UnrecoverableError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootQueue, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { bootFaults } from './fakes.js';

const redis = useRedis();

const fail = (job: Job) => {
  throw Object.assign(new Error('no luck'), { wait: job.data });
};

async function run({ queue, ended, said }: QueueApp, options: object, data: unknown = 3, name = 'fail') {
  const { id } = await queue.add(name, data, options);
  const { type, attempt } = (await ended(id)) as { type: string; attempt: number };
  const waits = said.values.flatMap((e) => (e.type === 'retrying' && e.jobId === id ? [e.delayMs] : []));
  return { type, attempt, waits, reason: (await queue.get(id))?.failure?.reason };
}

describe('backoffs', () => {
  it('have names, in the options of a job, a handler, a queue and the module', async () => {
    @Processor('work')
    class Named {
      @Handle('handler', { backoff: 'curve' })
      handler(job: Job) {
        fail(job);
      }
    }
    const app = await bootQueue(redis, {
      root: { backoffs: { gentle: 5, other: 9 }, defaults: { attempts: 3 } },
      queue: {
        backoffs: { gentle: (attempt, error, job) => attempt + error.wait + job.data, curve: [1, 2] },
        defaults: { backoff: 'other' },
      },
      handlers: { fail },
      providers: [Named],
    });
    expect(await run(app, { backoff: 'gentle' })).toMatchObject({ waits: [7, 8] });
    expect(await run(app, { backoff: { type: 'curve' } })).toMatchObject({ waits: [1, 2] });
    expect(await run(app, {})).toMatchObject({ waits: [9, 9] });
    expect(await run(app, {}, 3, 'handler')).toMatchObject({ waits: [1, 2] });
    await expect(app.queue.add('fail', 1, { backoff: 'gentel' })).rejects.toThrow(
      new InvalidOptionError(
        'add().options.backoff',
        "a duration in ms or like '10s', or one of the named backoffs gentle, other, curve",
        'gentel',
      ),
    );
    // The worker does not know the backoff. That costs the job no attempt.
    const producer = await bootQueue(redis, {
      logs: app.logs,
      root: { role: 'producer', backoffs: { elsewhere: 0 } },
      watch: false,
    });
    await producer.queue.add('fail', 1, { backoff: 'elsewhere', attempts: 2 });
    await app.logs.complaint(
      /backoff function failed, trying again in 1000 ms: there is no backoff 'elsewhere'/,
    );
    const { id } = await app.queue.schedules.upsert(
      's',
      { every: '1h' },
      { name: 'fail', options: { backoff: 'curve' } },
    );
    expect(await app.queue.schedules.get(id)).toMatchObject({ template: { options: { backoff: 'curve' } } });
  });

  it.each([null, -1, Promise.resolve(null), Promise.resolve(-1)])('stop for %s', async (answer) => {
    const app = await bootQueue(redis, {
      handlers: { fail },
      queue: { defaults: { backoff: () => answer, attempts: 9 } },
    });
    expect(await run(app, {})).toMatchObject({ type: 'dead', attempt: 1, reason: 'retries-exhausted' });
  });

  it('are not used if a cause is an UnrecoverableError, however deep and in a cycle', async () => {
    const deep = (depth: number): Error =>
      depth === 0 ? new UnrecoverableError('no') : new Error('outer', { cause: deep(depth - 1) });
    const circle = new Error('circle');
    circle.cause = circle;
    const app = await bootQueue(redis, {
      handlers: {
        deep: (job) => {
          throw deep(job.data);
        },
        circle: () => {
          throw circle;
        },
      },
      queue: { defaults: { attempts: 2, backoff: 0 } },
    });
    expect(await run(app, {}, 1, 'deep')).toMatchObject({ attempt: 1, reason: 'unrecoverable' });
    expect(await run(app, {}, 10, 'deep')).toMatchObject({ attempt: 1, reason: 'unrecoverable' });
    expect(await run(app, {}, 11, 'deep')).toMatchObject({ attempt: 2, reason: 'retries-exhausted' });
    expect(await run(app, {}, 1, 'circle')).toMatchObject({ attempt: 2, reason: 'retries-exhausted' });
  });

  it('are checked at bootstrap', async () => {
    @Processor('work')
    class Wrong {
      @Handle('a', { backoff: 'nobody' })
      a() {}
    }
    const faults = await bootFaults({
      imports: [
        QueueModule.forRoot({ backoffs: { fixed: 1, '5s': 2, gentle: 'other', wrong: true } as never }),
        QueueModule.registerQueue(
          { name: 'work', backoffs: { kind: 1 } },
          { name: 'other', backoffs: { kind: 1 }, defaults: { backoff: 'soon' } },
        ),
      ],
      providers: [Wrong],
    });
    const rule =
      "names: a name of 1 to 64 characters out of A-Z a-z 0-9 . _ - that is not a duration and not 'fixed' or 'exponential'";
    expect(faults).toEqual([
      `forRoot().backoffs must be an object whose keys are ${rule}, got "fixed" (string)`,
      `registerQueue('other').defaults.backoff must be a duration in ms or like '10s', or one of the named backoffs kind, got "soon" (string)`,
      `Wrong.a: @Handle('a').backoff must be a duration in ms or like '10s', or one of the named backoffs kind, got "nobody" (string)`,
    ]);
  });
});
