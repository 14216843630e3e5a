import { Controller, Injectable, type ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { InjectQueue } from '#lib/decorators/inject-queue.decorator.js';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';
import { BootstrapError } from '#lib/errors.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { defineJob } from '#lib/job/define-job.js';
import { Snooze } from '#lib/job/job.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import type { Queue } from '#lib/producer/queue.js';
import { createProducer } from '#lib/subpaths/standalone.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { bootApp, type BootedApp } from '../support/app.js';

const root = () => QueueModule.forRoot({ connection: 'memory' });
const email = () => QueueModule.registerQueue({ name: 'email' });

@Processor('email')
class Good {
  @Handle('welcome')
  welcome() {}
}

/** The log of an application that starts with these modules and providers. */
async function startOf(metadata: ModuleMetadata): Promise<void> {
  const module = await Test.createTestingModule(metadata).compile();
  try {
    await module.init();
  } finally {
    await module.close().catch(() => undefined);
  }
}
const starting =
  (...providers: NonNullable<ModuleMetadata['providers']>) =>
  () =>
    startOf({ imports: [root(), email()], providers });
const withRoot = (options: object) => () =>
  startOf({ imports: [QueueModule.forRoot({ connection: 'memory', ...options } as never), email()] });
const withQueue = (options: object) => () =>
  startOf({ imports: [root(), QueueModule.registerQueue({ name: 'email', ...options } as never)] });

type Call = (app: { queue: Queue; get: BootedApp['get'] }) => unknown;
const calling = (call: Call) => async () => {
  const app = await bootApp({ imports: [root(), email()], providers: [Good] });
  await call({ queue: app.get(getQueueToken('email')), get: app.get });
};
const adding = (options: object) => calling(({ queue }) => queue.add('welcome', {}, options as never));

// Options and calls that a newcomer gets wrong. Each answer names the place and the value, and says what to do
// of the public API.
const rows: [mistake: string, message: string, make: () => unknown][] = [
  [
    'no forRoot',
    'QueueModule.forRoot() or forRootAsync() is missing; import one of them once, in the root module',
    () => startOf({ imports: [email()] }),
  ],
  [
    'forRoot twice',
    'QueueModule.forRoot() or forRootAsync() is imported twice; import it once, in the root module',
    () => startOf({ imports: [root(), root(), email()] }),
  ],
  [
    'a URL without redis://',
    `forRoot().connection must be a redis:// or rediss:// URL, or 'memory', got "localhost:6379" (string)`,
    withRoot({ connection: 'localhost:6379' }),
  ],
  [
    'url for connection',
    "forRoot().url is not an option; name the server in the option connection: 'redis://localhost:6379', or an object with host, port and other options of ioredis",
    () => startOf({ imports: [QueueModule.forRoot({ url: 'redis://x' } as never)] }),
  ],
  [
    'redis for connection',
    "forRoot().redis is not an option; name the server in the option connection: 'redis://localhost:6379', or an object with host, port and other options of ioredis",
    () => startOf({ imports: [QueueModule.forRoot({ redis: { host: 'x' } } as never)] }),
  ],
  [
    'defaultJobOptions',
    'forRoot().defaultJobOptions is not an option; use the option defaults for the defaults of jobs',
    withRoot({ defaultJobOptions: { attempts: 3 } }),
  ],
  [
    'a prefix with a colon',
    'forRoot().prefix must be 1 to 64 characters out of A-Z a-z 0-9 . _ -, got "shop:jobs" (string)',
    withRoot({ prefix: 'shop:jobs' }),
  ],
  [
    'concurrency in forRoot',
    "forRoot().concurrency is not an option; set it where the jobs are run: @Processor('queue', { concurrency })",
    withRoot({ concurrency: 5 }),
  ],
  [
    'concurrency in registerQueue',
    "registerQueue('email').concurrency is not an option; set it where the jobs are run: @Processor('queue', { concurrency })",
    withQueue({ concurrency: 5 }),
  ],
  [
    'a number as text',
    `registerQueue('email').defaults.attempts must be an integer from 1 to 9007199254740991, got "3" (string)`,
    withQueue({ defaults: { attempts: '3' } }),
  ],
  [
    'seconds for milliseconds',
    "registerQueue('email').defaults.timeout must be a duration in ms or like '10s', in whole milliseconds, got 1.5 (number)",
    withQueue({ defaults: { timeout: 1.5 } }),
  ],
  [
    'registerQueue with a text',
    `registerQueue() must be an object: { name: 'email' }, got "email" (string)`,
    () => startOf({ imports: [root(), QueueModule.registerQueue('email' as never)] }),
  ],
  [
    'a queue without a name',
    'registerQueue().name: a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got undefined',
    () => startOf({ imports: [root(), QueueModule.registerQueue({} as never)] }),
  ],
  [
    'a queue name with a slash',
    'registerQueue().name: a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got "email/eu" (string)',
    () => startOf({ imports: [root(), QueueModule.registerQueue({ name: 'email/eu' })] }),
  ],
  [
    'forRootAsync without a factory',
    'QueueModule.forRootAsync() needs one of useFactory, useClass and useExisting, got 0',
    () => startOf({ imports: [QueueModule.forRootAsync({} as never)] }),
  ],
  [
    'a factory that returns nothing',
    'the result of useFactory of forRootAsync() must be an object of options, got undefined',
    () => startOf({ imports: [QueueModule.forRootAsync({ useFactory: () => undefined as never }), email()] }),
  ],
  [
    'a processor of an unregistered queue',
    "@Processor of Emails: queue 'emails' is not registered; add QueueModule.registerQueue({ name: 'emails' }) to a module (registered: email)",
    () => {
      @Processor('emails')
      class Emails {
        @Handle('welcome')
        welcome() {}
      }
      return starting(Emails)();
    },
  ],
  [
    'a processor without @Handle, as with BullMQ',
    "Emails is a processor of queue 'email' and has no handler; put @Handle('name') on one of its methods",
    () => {
      @Processor('email')
      class Emails {
        process() {}
      }
      return starting(Emails)();
    },
  ],
  [
    '@Handle without @Processor',
    "Emails.welcome has @Handle('welcome'), but Emails has no @Processor; add @Processor('queue') to the class",
    () => {
      @Injectable()
      class Emails {
        @Handle('welcome')
        welcome() {}
      }
      return starting(Emails)();
    },
  ],
  [
    'a job name twice',
    "job 'welcome' of queue 'email' has 2 handlers: Emails.welcome and Emails.hello; keep one",
    () => {
      @Processor('email')
      class Emails {
        @Handle('welcome')
        welcome() {}
        @Handle('welcome')
        hello() {}
      }
      return starting(Emails)();
    },
  ],
  [
    'a processor as controller',
    'Emails is a controller with @Processor; make it a provider, because controllers only answer requests',
    () => {
      @Controller()
      @Processor('email')
      class Emails {
        @Handle('welcome')
        welcome() {}
      }
      return startOf({ imports: [root(), email()], controllers: [Emails] });
    },
  ],
  [
    '@Processor with the options of BullMQ',
    `@Processor('email') of Emails.concurrency must be an integer from 1 to 10000, got "5" (string)`,
    () => {
      @Processor('email', { concurrency: '5' as never })
      class Emails {
        @Handle('welcome')
        welcome() {}
      }
      return starting(Emails)();
    },
  ],
  [
    '@Processor with an object',
    '@Processor of Emails: a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got {"name":"email"} (object); ' +
      "the name comes first: @Processor('audio', { concurrency: 5 })",
    () => {
      @Processor({ name: 'email' } as never)
      class Emails {
        @Handle('welcome')
        welcome() {}
      }
      return starting(Emails)();
    },
  ],
  [
    '@Handle with an object',
    '@Handle({"name":"welcome"} (object)) on Emails.welcome: a job name is 1 to 255 bytes of well-formed text without control characters: {"name":"welcome"} (object) is not a string; the name comes first, then the data or the options',
    () => {
      @Processor('email')
      class Emails {
        @Handle({ name: 'welcome' } as never)
        welcome() {}
      }
      return starting(Emails)();
    },
  ],
  [
    'a policy of a handler with an unknown field',
    "Emails.welcome: @Handle('welcome').retries is not an option; use the option attempts, which counts the first attempt too",
    () => {
      @Processor('email')
      class Emails {
        @Handle('welcome', { retries: 3 } as never)
        welcome() {}
      }
      return starting(Emails)();
    },
  ],
  [
    'a wrong cron expression',
    '@Schedule() of Emails.digest.cron must be a cron expression of 5 fields, or of 6 with seconds first (not of 2), got "every day" (string)',
    () => {
      @Processor('email')
      class Emails {
        @Handle('digest')
        @Schedule({ cron: 'every day' })
        digest() {}
      }
      return starting(Emails)();
    },
  ],
  [
    'a listener of an event that does not exist',
    `@OnQueueEvent("failed") of Audit.failed: there is no event "failed" (string); name one or several of added, delayed, active, progress, completed, retrying, dead, stalled, released, removed, cancelled, updated, paused, resumed, breakerOpened, breakerClosed, published; use 'retrying' for an attempt that is retried and 'dead' for the last one; @OnJob('failed') gets both`,
    () => {
      @Injectable()
      class Audit {
        @OnQueueEvent('failed' as never)
        failed() {}
      }
      return starting(Good, Audit)();
    },
  ],
  [
    'a listener of drained',
    `@OnQueueEvent("drained") of Audit.drained: there is no event "drained" (string); name one or several of added, delayed, active, progress, completed, retrying, dead, stalled, released, removed, cancelled, updated, paused, resumed, breakerOpened, breakerClosed, published; use the observable QueueEvents.drained('queue')`,
    () => {
      @Injectable()
      class Audit {
        @OnQueueEvent('drained' as never)
        drained() {}
      }
      return starting(Good, Audit)();
    },
  ],
  [
    'a listener of a processor for what queues tell',
    `@OnJob("progress") of Emails.moved: there is no type "progress" (string); name one or several of active, completed, failed, dead, stalled; @OnQueueEvent('progress') gets it, in any provider`,
    () => {
      @Processor('email')
      class Emails {
        @Handle('digest')
        digest() {}
        @OnJob('progress' as never)
        moved() {}
      }
      return starting(Emails)();
    },
  ],
  [
    'a listener of a processor for the connection',
    `@OnJob("error") of Emails.failed: there is no type "error" (string); name one or several of active, completed, failed, dead, stalled; the log and QueueEvents.status$ show the state of the connection`,
    () => {
      @Processor('email')
      class Emails {
        @Handle('digest')
        digest() {}
        @OnJob('error' as never)
        failed() {}
      }
      return starting(Emails)();
    },
  ],
  [
    'a backoff of its own without its function',
    `add().options.backoff.type must be 'fixed' or 'exponential'; for a named backoff, set "backoff" to a name from the option "backoffs" of forRoot or registerQueue, got "custom" (string)`,
    adding({ backoff: { type: 'custom', delay: 1_000 } }),
  ],
  [
    'extraOptions',
    'forRoot().extraOptions is not an option; use the option autoStart of forRoot to start workers later',
    withRoot({ extraOptions: { manualRegistration: true } }),
  ],
  [
    'skipVersionCheck',
    'forRoot().skipVersionCheck is not an option; leave it out: Godwit needs no such option',
    withRoot({ skipVersionCheck: true }),
  ],
  [
    'a queue that the module does not import',
    `Nest can't resolve dependencies of the Signup (?). Please make sure that the argument "godwit:queue:emails"`,
    () => {
      @Injectable()
      class Signup {
        constructor(@InjectQueue('emails') readonly queue: Queue) {}
      }
      return starting(Signup)();
    },
  ],
  [
    'jobId',
    'add().options.jobId is not an option; use the option id for the id of a job',
    adding({ jobId: 'a' }),
  ],
  [
    'removeOnComplete',
    'add().options.removeOnComplete is not an option; completed jobs are removed at once unless they have the option retention; completed: { max } of the queue limits how many are kept',
    adding({ removeOnComplete: true }),
  ],
  [
    'repeat',
    "add().options.repeat is not an option; use @Schedule on the handler, or queue.schedules.upsert('id', { cron }, { name })",
    adding({ repeat: { pattern: '* * * * *' } }),
  ],
  [
    'attempts 0',
    'add().options.attempts must be an integer from 1 to 9007199254740991, got 0 (number)',
    adding({ attempts: 0 }),
  ],
  [
    'attempts as text',
    'add().options.attempts must be an integer from 1 to 9007199254740991, got "3" (string)',
    adding({ attempts: '3' }),
  ],
  [
    'a delay in words',
    `add().options.delay must be a duration in ms or like '10s', got "tomorrow" (string)`,
    adding({ delay: 'tomorrow' }),
  ],
  [
    'a Date as delay',
    `add().options.delay must be a duration in ms or like '10s'; for a moment use the option runAt, got "1970-01-01T00:00:00.000Z" (Date)`,
    adding({ delay: new Date(0) }),
  ],
  [
    'delay and runAt',
    'add().options.runAt must be left out if delay is given, got "1970-01-01T00:00:00.000Z" (Date)',
    adding({ delay: '1s', runAt: new Date(0) }),
  ],
  [
    'a priority that is too high',
    'add().options.priority must be an integer from 0 to 2097151, got 10000000 (number)',
    adding({ priority: 10_000_000 }),
  ],
  ['a misspelt option', 'add().options.dealy is not an option; did you mean delay?', adding({ dealy: '1m' })],
  [
    'options in an opts field',
    'add().options.opts is not an option; use the field options for the options of a job',
    adding({ opts: { delay: 5 } }),
  ],
  [
    'no name',
    'a job name is 1 to 255 bytes of well-formed text without control characters: {"to":"ada"} (object) is not a string; the name comes first, then the data or the options',
    calling(({ queue }) => (queue as any).add({ to: 'ada' })),
  ],
  [
    'a function in the data',
    'add().data.render is a function, which JSON cannot hold; turn it into a string, a number or plain data first',
    calling(({ queue }) => queue.add('welcome', { render: () => 1 })),
  ],
  [
    'a Map in the data',
    'add().data.seen is a Map, which JSON cannot hold; turn it into a string, a number or plain data first',
    calling(({ queue }) => queue.add('welcome', { seen: new Map() })),
  ],
  [
    'a BigInt in the data',
    'add().data.id is a BigInt, which JSON cannot hold; turn it into a string, a number or plain data first',
    calling(({ queue }) => queue.add('welcome', { id: 1n })),
  ],
  [
    'an entity that refers to itself',
    'add().data.user.self is a circular reference, which JSON cannot hold; turn it into a string, a number or plain data first',
    calling(({ queue }) => {
      const user: Record<string, unknown> = { name: 'ada' };
      user['self'] = user;
      return queue.add('welcome', { user });
    }),
  ],
  [
    'no data',
    'add().data is undefined, which JSON cannot hold; pass null if there is no value',
    calling(({ queue }) => (queue as any).add('welcome')),
  ],
  [
    'data that the schema refuses',
    "the data of job 'welcome' in queue 'email' does not match its schema: to: Invalid email address; correct the data, or the schema",
    calling(({ get }) => {
      const welcome = defineJob('email', 'welcome', z.object({ to: z.email() }));
      return get(QueueProducer).add(welcome, { to: 'ada' });
    }),
  ],
  [
    'a queue that is not registered',
    "queue 'emails' is not registered; add QueueModule.registerQueue({ name: 'emails' }) to a module (registered: email)",
    calling(({ get }) => get(QueueProducer).add('emails', 'welcome', {})),
  ],
  [
    'addBulk with one job',
    'addBulk() must be a list of jobs, got {"name":"welcome","data":1} (object)',
    calling(({ queue }) => (queue as any).addBulk({ name: 'welcome', data: 1 })),
  ],
  [
    'addBulk with opts',
    'addBulk()[0].opts is not an option; use the field options for the options of a job',
    calling(({ queue }) => (queue as any).addBulk([{ name: 'welcome', data: 1, opts: { delay: 1 } }])),
  ],
  [
    'an id with a line break',
    'a job id is 1 to 255 bytes of well-formed text without control characters: "a\\nb" (string) holds the control character U+000A at position 1',
    adding({ id: 'a\nb' }),
  ],
  [
    'a number as id',
    'a job id is 1 to 255 bytes of well-formed text without control characters: 7 (number) is not a string; pass String(7)',
    adding({ id: 7 }),
  ],
  [
    'events.on',
    "ofType() must be one of added, delayed, active, progress, completed, retrying, dead, stalled, released, removed, cancelled, updated, paused, resumed, breakerOpened, breakerClosed, published, got \"failed\" (string); use 'retrying' for an attempt that is retried and 'dead' for the last one; @OnJob('failed') gets both",
    calling(({ get }) => get(QueueEvents).ofType('email', 'failed' as never)),
  ],
  [
    'jobs without a state',
    'jobs() must be an object, got undefined',
    calling(({ queue }) => (queue as any).jobs()),
  ],
  [
    'jobs of the state failed',
    `jobs().state must be one of 'waiting', 'delayed', 'active', 'completed', 'dead', 'cancelled', got "failed" (string); a failed job is 'delayed' until its next attempt, and 'dead' after the last one`,
    calling(({ queue }) => queue.jobs({ state: 'failed' as never })),
  ],
  [
    'remove of a job that is gone',
    `queue 'email' has no job "gone"; completed jobs are kept only with the option retention`,
    calling(({ queue }) => queue.remove('gone')),
  ],
  [
    'retry of a job that is gone',
    `queue 'email' has no job "gone"; completed jobs are kept only with the option retention`,
    calling(({ queue }) => queue.dead.retry('gone')),
  ],
  [
    'setConcurrency of 0',
    "setConcurrency('email') must be at least 1; to run no jobs, use QueueRuntime.pause('email'), got 0 (number)",
    calling(({ get }) => get(QueueRuntime).setConcurrency('email', 0)),
  ],
  [
    'pause of an unknown queue',
    "queue 'emails' is not registered; add QueueModule.registerQueue({ name: 'emails' }) to a module (registered: email)",
    calling(({ get }) => get(QueueRuntime).pause('emails')),
  ],
  [
    'queues with a text',
    'queues() must be a list of names of queues, or nothing for all, got "email" (string)',
    calling(({ get }) => get(QueueInspector).queues('email' as never)),
  ],
  [
    'a schedule without a time',
    'schedules.upsert().rule must be an object with cron or every, got {} (object)',
    calling(({ queue }) => queue.schedules.upsert('daily', {} as never, { name: 'welcome' })),
  ],
  [
    'a schedule with pattern',
    'schedules.upsert().rule.pattern is not an option; use the option cron of @Schedule or queue.schedules.upsert()',
    calling(({ queue }) =>
      queue.schedules.upsert('daily', { pattern: '0 3 * * *' } as never, { name: 'welcome' }),
    ),
  ],
  [
    'Snooze without a time',
    "Snooze() must be a duration in ms or like '10s', got undefined",
    () => new Snooze(undefined as never),
  ],
  [
    'a producer in memory',
    'createProducer().connection must be the URL or options of a Redis: no other process could see jobs in the memory of this process, got "memory" (string)',
    () => createProducer({ connection: 'memory' as never }),
  ],
  [
    'starting the workers before init',
    'QueueRuntime.start() was called before the application was initialised; await app.init() first',
    async () => {
      const module = await Test.createTestingModule({
        imports: [root(), email()],
        providers: [Good],
      }).compile();
      return module.get(QueueRuntime).start();
    },
  ],
  [
    'adding after the application has stopped',
    'add: the queues are stopped; nothing was changed',
    async () => {
      const app = await bootApp({ imports: [root(), email()], providers: [Good] });
      const queue = app.get<Queue>(getQueueToken('email'));
      await app.close();
      return queue.add('welcome', {});
    },
  ],
  [
    'a wrong unit in a duration',
    `registerQueue('email').defaults.timeout must be a duration in ms or like '10s', got "5 mins ago" (string)`,
    withQueue({ defaults: { timeout: '5 mins ago' } }),
  ],
  [
    'limiter',
    "registerQueue('email').limiter is not an option; use the option limits of registerQueue: { rate: { max, per } }",
    withQueue({ limiter: { max: 10, duration: 1000 } }),
  ],
  [
    'lockDuration',
    'forRoot().lockDuration is not an option; use the option lease of forRoot or registerQueue: { duration, maxStalls }',
    withRoot({ lockDuration: 30_000 }),
  ],
  [
    'an unknown backoff',
    `add().options.backoff must be a duration in ms or like '10s', or a name from the option "backoffs" of forRoot or registerQueue, got "exponentially" (string)`,
    adding({ backoff: 'exponentially' }),
  ],
  [
    'a result that no retention keeps',
    `addAndWait().options.waitTimeout must be a duration in ms or like '10s', got "long" (string)`,
    calling(({ queue }) => queue.addAndWait('welcome', {}, { waitTimeout: 'long' as never })),
  ],
  [
    'forRoot options in registerQueue',
    "registerQueue('email').connection is not an option; set it in forRoot({ connection }); queues of another server name a configuration, forRoot(key, …), with configKey",
    withQueue({ connection: 'memory' }),
  ],
  [
    'a producer with url',
    "createProducer().url is not an option; name the server in the option connection: 'redis://localhost:6379', or an object with host, port and other options of ioredis",
    () => createProducer({ url: 'redis://x' } as never),
  ],
];

it('there are at least fifty', () => {
  expect(new Set(rows.map(([mistake]) => mistake)).size).toBe(rows.length);
  expect(rows.length).toBeGreaterThanOrEqual(50);
});

it.each(rows)('%s', async (_mistake, message, make) => {
  const error: unknown = await Promise.resolve()
    .then(make)
    .then(
      () => expect.fail('it is taken'),
      (thrown: unknown) => thrown,
    );
  const told = error instanceof BootstrapError ? error.faults.join('\n') : (error as Error).message;
  // Nest's own message, followed by our advice.
  expect(message.startsWith('Nest ') ? told.slice(0, message.length) : told).toBe(message);
});
