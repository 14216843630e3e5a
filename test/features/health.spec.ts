import { Controller, Get, Injectable, Module, type Provider } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { describe, expect, it } from 'vitest';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { GodwitError } from '#lib/errors.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { QueueHealthIndicator, type QueueHealthOptions } from '#lib/subpaths/terminus.js';
import { startRedis } from '../../tools/redis.mjs';
import { bootApp, type BootedApp } from '../support/app.js';
import { atEnd } from '../support/cleanup.js';
import { NEST_MAJOR } from '../support/nest.js';
import { Logs, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

/** The check behind `/health`. A test changes it. */
@Injectable()
class Asked {
  options: QueueHealthOptions | undefined;
}

@Controller()
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly queues: QueueHealthIndicator,
    private readonly asked: Asked,
  ) {}

  @Get('health')
  @HealthCheck()
  check() {
    return this.health.check([() => this.queues.check('queues', this.asked.options)]);
  }
}

@Module({
  imports: [TerminusModule.forRoot({ logger: false })],
  controllers: [HealthController],
  providers: [QueueHealthIndicator, Asked],
})
class HealthModule {}

@Processor('work')
class Works {
  @Handle()
  run() {
    return 1;
  }
}

interface Health extends BootedApp {
  readonly queue: Queue;
  readonly runtime: QueueRuntime;
  /** The status, the overall state, and the details of the indicator. */
  readonly ask: (options?: QueueHealthOptions) => Promise<[number, string, Record<string, any>]>;
}

async function boot(root: QueueModuleOptions = {}, providers: Provider[] = [Works]): Promise<Health> {
  const booted = await bootApp({
    imports: [
      QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix, ...root }),
      QueueModule.registerQueue({ name: 'work' }, { name: 'idle' }),
      HealthModule,
    ],
    providers,
    http: true,
    logger: new Logs(),
  });
  return {
    ...booted,
    queue: booted.get<Queue>(getQueueToken('work')),
    runtime: booted.get(QueueRuntime),
    ask: async (options) => {
      // Longer than a machine may be busy, for tests that do not test the time.
      booted.get(Asked).options = { timeout: '15s', ...options };
      const response = await fetch(`${booted.url}/health`);
      const body = (await response.json()) as { status: string; details: { queues: Record<string, any> } };
      return [response.status, body.status, body.details?.queues];
    },
  };
}

const nothing = { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0 };

describe('the health of the queues, over HTTP', () => {
  it('is up if Redis answers and the workers run, and shows the counts of the queues', async () => {
    const { ask } = await boot();
    expect(await ask()).toEqual([
      200,
      'ok',
      {
        status: 'up',
        queues: {
          work: { counts: nothing, paused: false, oldestWaitingMs: null, workers: 'running' },
          idle: { counts: nothing, paused: false, oldestWaitingMs: null },
        },
      },
    ]);
    const [, , one] = await ask({ queues: 'idle' });
    expect(Object.keys(one['queues'])).toEqual(['idle']);
  });

  it('is down if workers of this process are paused or stopped, unless the check ignores workers', async () => {
    const { ask, runtime } = await boot();
    runtime.pause('work');
    const paused = { status: 'down', reasons: ["the workers of queue 'work' are paused"] };
    expect(await ask()).toMatchObject([503, 'error', paused]);
    expect(await ask({ queues: ['idle'] })).toMatchObject([200, 'ok', { status: 'up' }]);
    expect(await ask({ workers: false })).toMatchObject([200, 'ok', { status: 'up' }]);
    runtime.resume();
    expect(await ask()).toMatchObject([200, 'ok', { status: 'up' }]);
    await runtime.stop();
    const stopped = { status: 'down', reasons: ["the workers of queue 'work' are stopped"] };
    expect(await ask()).toMatchObject([503, 'error', stopped]);
  });

  it('is down before the workers are started by hand, and while they drain', async () => {
    const gate = latch();
    const started = latch();
    @Processor('work')
    class Slow {
      @Handle()
      async run() {
        started.open();
        await gate.promise;
      }
    }
    const { ask, runtime, queue } = await boot({ autoStart: false }, [Slow]);
    expect(await ask()).toMatchObject([
      503,
      'error',
      { reasons: ["the workers of queue 'work' are not started"] },
    ]);
    await runtime.start();
    await queue.add('slow', null);
    await started.wait(PATIENT);
    const stopping = runtime.stop();
    expect(await ask()).toMatchObject([
      503,
      'error',
      { reasons: ["the workers of queue 'work' are draining"] },
    ]);
    gate.open();
    await stopping;
  });

  it('is degraded or down by the number of jobs that wait and by how long the first has waited', async () => {
    const { ask, queue } = await boot({ role: 'producer' });
    await queue.addBulk(Array.from({ length: 3 }, () => ({ name: 'x', data: null })));
    // Terminus 11, which Nest 11 needs, has no such state.
    const [degraded, state] = NEST_MAJOR < 12 ? ['ok', 'up'] : ['degraded', 'degraded'];
    expect(await ask({ maxWaiting: 3, degraded: { maxWaiting: 2 } })).toMatchObject([
      200,
      degraded,
      { status: state, reasons: ["queue 'work' has 3 waiting jobs, more than 2"] },
    ]);
    expect(await ask({ maxWaiting: 2, degraded: { maxWaiting: 1 } })).toMatchObject([
      503,
      'error',
      { status: 'down', reasons: ["queue 'work' has 3 waiting jobs, more than 2"] },
    ]);
    const old = { degraded: { maxOldest: 1 } };
    await until(async () => (await ask(old))[2].reasons !== undefined, PATIENT);
    const [, , { reasons }] = await ask(old);
    expect(reasons[0]).toMatch(/^a job of queue 'work' has waited for \d+ ms, longer than 1 ms$/);
    expect(await ask({ maxOldest: 1, degraded: { maxWaiting: 2 } })).toMatchObject([
      503,
      'error',
      { reasons: [expect.stringContaining('has waited'), "queue 'work' has 3 waiting jobs, more than 2"] },
    ]);
    expect(await ask({ queues: ['idle'], maxWaiting: 0, maxOldest: 0 })).toMatchObject([200, 'ok', {}]);
    expect(await ask({ maxWaiting: 3, maxOldest: '1d' })).toMatchObject([200, 'ok', {}]);
  });

  it('is down within its time while Redis is away, and up once it is back', async () => {
    const server = await startRedis({ private: true });
    const { ask, close } = await boot({ connection: server.url });
    atEnd(() => close().then(() => server.stop()));
    expect(await ask()).toMatchObject([200, 'ok', {}]);
    await server.kill9();
    const since = performance.now();
    const [status, , told] = await ask({ timeout: '300ms' });
    expect(performance.now() - since).toBeLessThan(5_000);
    expect([status, told['status']]).toEqual([503, 'down']);
    expect(told['reasons']).toEqual([expect.stringMatching(/^Redis does not answer: ./)]);
    expect(told['workers']).toEqual([{ queue: 'work', state: 'running' }]);
    await server.restart();
    await until(async () => (await ask({ timeout: '1s' }))[0] === 200, PATIENT);
  });

  it('also checks Redis if there is no queue', async () => {
    const { url } = await bootApp({
      imports: [QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix }), HealthModule],
      http: true,
    });
    const response = await fetch(`${url}/health`);
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { details: { queues: { status: 'up' } } },
    ]);
  });
});

describe('options of a check', () => {
  const indicator = async () => (await boot({ role: 'producer' })).get(QueueHealthIndicator);

  it('are refused with a message if they are wrong', async () => {
    const health = await indicator();
    const wrong: [unknown, string][] = [
      [null, 'QueueHealthIndicator.check() must be an object, got null'],
      [{ maxWaiting: -1 }, 'QueueHealthIndicator.check().maxWaiting must be an integer from 0 to'],
      [
        { maxOldest: 'soon' },
        "QueueHealthIndicator.check().maxOldest must be a duration in ms or like '10s'",
      ],
      [{ timeout: 0 }, 'QueueHealthIndicator.check().timeout must be a duration from 1 ms to'],
      [{ workers: 'yes' }, 'QueueHealthIndicator.check().workers must be true or false'],
      [
        { queues: [] },
        'QueueHealthIndicator.check().queues must be the name of a registered queue, or several',
      ],
      [{ queues: ['work', 7] }, 'QueueHealthIndicator.check().queues must be the name of a registered queue'],
      [{ queues: 'wrok' }, "queue 'wrok' is not registered"],
      [{ queues: ['work', '__proto__'] }, "queue '__proto__' is not registered"],
      [
        { maxwaiting: 1 },
        'QueueHealthIndicator.check().maxwaiting is not an option; did you mean maxWaiting?',
      ],
      [{ degraded: { queues: 'work' } }, 'QueueHealthIndicator.check().degraded.queues is not an option'],
      [
        { maxWaiting: 5, degraded: { maxWaiting: 5 } },
        'QueueHealthIndicator.check().degraded.maxWaiting must be lower than maxWaiting, beyond which it is down (5)',
      ],
      [
        { maxOldest: '1s', degraded: { maxOldest: '1m' } },
        'QueueHealthIndicator.check().degraded.maxOldest must be lower than maxOldest, beyond which it is down (1000)',
      ],
    ];
    for (const [options, message] of wrong) {
      const error: unknown = await health.check('x', options as never).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(GodwitError);
      expect((error as Error).message).toContain(message);
    }
  });
});
