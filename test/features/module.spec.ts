import { Inject, Injectable, Module, type DynamicModule } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { InjectQueue } from '#lib/decorators/inject-queue.decorator.js';
import { QUEUE_ENGINE, SETTINGS, getQueueToken } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import {
  BootstrapError,
  InvalidQueueNameError,
  MissingRootError,
  NotRunningError,
  UnknownQueueError,
} from '#lib/errors.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import { defineJob } from '#lib/job/define-job.js';
import type { ResolvedModuleOptions } from '#lib/options/module-options.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import type { QueueOptions } from '#lib/options/module-options.js';
import type { Queue } from '#lib/producer/queue.js';
import {
  QueueModule,
  type QueueModuleOptionsFactory,
  type QueueOptionsFactory,
} from '#lib/module/queue.module.js';
import { QueueRegistry } from '#lib/module/queue.registry.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { latch } from '../support/wait.js';
import { bootFaults, compileApp } from './fakes.js';

async function settingsOf(root: ReturnType<typeof QueueModule.forRoot>): Promise<ResolvedModuleOptions> {
  const { app, init } = await compileApp({ imports: [root] });
  await init();
  return app.get<ResolvedModuleOptions>(SETTINGS);
}

/** The faults for which an application does not start. */

@Injectable()
class Config {
  readonly prefix = 'configured';
}
@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}

@Injectable()
class OptionsFactory implements QueueModuleOptionsFactory {
  constructor(private readonly config: Config) {}
  async createQueueModuleOptions() {
    return { prefix: `${this.config.prefix}-by-class` };
  }
}
@Module({ imports: [ConfigModule], providers: [OptionsFactory], exports: [OptionsFactory] })
class OptionsModule {}

describe('forRoot and forRootAsync', () => {
  it('take the options as they are, or nothing', async () => {
    expect(await settingsOf(QueueModule.forRoot({ prefix: 'shop' }))).toMatchObject({ prefix: 'shop' });
    expect(await settingsOf(QueueModule.forRoot())).toMatchObject({ prefix: 'godwit', role: 'both' });
  });

  it('take them from a factory, a class or an existing provider', async () => {
    const imports = [ConfigModule];
    const useFactory = async (config: Config) => ({ prefix: config.prefix });
    const made = QueueModule.forRootAsync({ imports, inject: [Config], useFactory });
    expect(await settingsOf(made)).toMatchObject({ prefix: 'configured' });
    const byClass = QueueModule.forRootAsync({ imports, useClass: OptionsFactory });
    expect(await settingsOf(byClass)).toMatchObject({ prefix: 'configured-by-class' });
    const existing = QueueModule.forRootAsync({ imports: [OptionsModule], useExisting: OptionsFactory });
    expect(await settingsOf(existing)).toMatchObject({ prefix: 'configured-by-class' });
  });

  it('refuse none or several of the three ways at once', () => {
    expect(() => QueueModule.forRootAsync({})).toThrow(
      'QueueModule.forRootAsync() needs one of useFactory, useClass and useExisting, got 0',
    );
    expect(() => QueueModule.forRootAsync({ useFactory: () => ({}), useClass: OptionsFactory })).toThrow(
      'got 2',
    );
  });

  it('refuse a class without the method', async () => {
    class Settings {}
    const needs = (method: string) => `must be a class with the method ${method}(), got {} (Settings)`;
    const root = QueueModule.forRootAsync({ useClass: Settings as never });
    await expect(compileApp({ imports: [root] })).rejects.toThrow(
      `forRootAsync().useClass ${needs('createQueueModuleOptions')}`,
    );
    const queue = QueueModule.registerQueueAsync({ name: 'email', useClass: Settings as never });
    await expect(compileApp({ imports: [QueueModule.forRoot(), queue] })).rejects.toThrow(
      `registerQueueAsync().useClass ${needs('createQueueOptions')}`,
    );
  });

  it('do not name a queue without a name among those that are registered', async () => {
    @Processor('email')
    class Emails {
      @Handle('welcome')
      welcome() {}
    }
    const imports = [QueueModule.forRoot(), QueueModule.registerQueue('email' as never)];
    expect(await bootFaults({ imports, providers: [Emails] })).toContainEqual(
      expect.stringMatching(/^@Processor of Emails: .* \(no queue is registered\)$/),
    );
  });

  it('report all faults of the options, together with the others', async () => {
    @Processor('email')
    class Empty {}
    const root = QueueModule.forRoot({ prefix: '', role: 'boss' as never, shutdown: { timeout: 'soon' } });
    const queues = QueueModule.registerQueue({ name: 'email' }, { name: 'e mail', maxPayloadBytes: -1 });
    expect(await bootFaults({ imports: [root, queues], providers: [Empty] })).toEqual([
      'forRoot().prefix must be 1 to 64 characters out of A-Z a-z 0-9 . _ -, got "" (string)',
      "forRoot().role must be one of 'producer', 'worker', 'both', got \"boss\" (string)",
      expect.stringMatching(/^forRoot\(\)\.shutdown\.timeout must be .*got "soon" \(string\)$/),
      'registerQueue().maxPayloadBytes must be an integer from 1 to 67108864, got -1 (number)',
      'registerQueue().name: a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got "e mail" (string)',
      "Empty is a processor of queue 'email' and has no handler; put @Handle('name') on one of its methods",
    ]);
  });

  it('let nothing be added after that, because the default connection would take it', async () => {
    const imports = [
      QueueModule.forRoot({ connection: 'redis.example:6379' }),
      QueueModule.registerQueue({ name: 'email' }),
    ];
    const { app, init } = await compileApp({ imports });
    await expect(init()).rejects.toThrow(BootstrapError);
    await expect(app.get(QueueProducer).add('email', 'welcome', {})).rejects.toThrow(NotRunningError);
  });

  it('report that a factory forgot to return its options', async () => {
    const forgetful = { useFactory: () => undefined as never };
    class Forgetful {
      createQueueModuleOptions() {
        return null as never;
      }
    }
    const faultOf = (root: DynamicModule) =>
      compileApp({ imports: [root] }).then(
        () => undefined,
        (error: Error) => error,
      );
    for (const [root, told] of [
      [
        QueueModule.forRootAsync(forgetful),
        'the result of useFactory of forRootAsync() must be an object of options, got undefined',
      ],
      [
        QueueModule.forRootAsync('reports', forgetful),
        "the result of useFactory of forRootAsync('reports') must be an object of options, got undefined",
      ],
      [
        QueueModule.forRootAsync({ useClass: Forgetful }),
        'the result of createQueueModuleOptions() of forRootAsync() must be an object of options, got null',
      ],
    ] as const) {
      const fault = await faultOf(root);
      expect(fault).toBeInstanceOf(BootstrapError);
      expect(fault!.message).toContain(told);
    }
  });

  it('are refused when they come twice', async () => {
    const imports = [QueueModule.forRoot(), QueueModule.forRoot()];
    expect(await bootFaults({ imports })).toEqual([
      'QueueModule.forRoot() or forRootAsync() is imported twice; import it once, in the root module',
    ]);
    const root = QueueModule.forRoot();
    @Module({ imports: [root] })
    class Feature {}
    const { init } = await compileApp({ imports: [root, Feature] });
    await expect(init(), 'the same module in two places is one').resolves.toBeUndefined();
  });

  it.each([
    ['registerQueue', QueueModule.registerQueue({ name: 'email' })],
    ['registerQueueAsync', QueueModule.registerQueueAsync({ name: 'email', useFactory: () => ({}) })],
  ])('are reported as missing by %s', async (_form, queue) => {
    await expect(compileApp({ imports: [queue] })).rejects.toThrow(new MissingRootError());
  });
});

describe('providers of forRoot are visible to', () => {
  @Injectable()
  class Far {
    constructor(
      readonly producer: QueueProducer,
      readonly events: QueueEvents,
      readonly runtime: QueueRuntime,
    ) {}
  }
  @Module({ providers: [Far], exports: [Far] })
  class FarModule {}

  it('every module, the same objects', async () => {
    @Injectable()
    class Near extends Far {}
    const { app } = await compileApp({ imports: [QueueModule.forRoot(), FarModule], providers: [Near] });
    const [far, near] = [app.get(Far), app.get(Near)];
    expect(far.producer).toBe(near.producer);
    expect(far.events).toBe(near.events);
    expect(far.runtime).toBe(near.runtime);
    expect(near.runtime).toBeInstanceOf(QueueRuntime);
  });

  it('only importers with isGlobal: false', async () => {
    const root = QueueModule.forRoot({ isGlobal: false });
    await expect(compileApp({ imports: [root, FarModule] })).rejects.toThrow(/can't resolve dependencies/);
    @Module({ imports: [root], providers: [Far] })
    class NearModule {}
    const email = QueueModule.registerQueue({ name: 'email' });
    const { app, init } = await compileApp({ imports: [root, NearModule, email] });
    await init();
    expect(app.get(Far).runtime.state).toBe('running');
  });
});

describe('registerQueue and registerQueueAsync', () => {
  @Injectable()
  class Sender {
    constructor(@InjectQueue('email') readonly emails: Queue) {}
  }
  const feature = (register = () => QueueModule.registerQueue({ name: 'email' })): any => {
    @Module({
      imports: [register()],
      providers: [{ provide: 'sender', useClass: Sender }],
      exports: ['sender'],
    })
    class Feature {}
    return Feature;
  };

  it('make one queue of one name, however many modules register it', async () => {
    const modules = [feature(), feature(), feature()];
    const { app, init } = await compileApp({ imports: [QueueModule.forRoot(), ...modules] });
    await init();
    const senders = app.get<Sender>('sender', { each: true, strict: false });
    expect(senders).toHaveLength(3);
    expect(new Set(senders.map((sender) => sender.emails)).size).toBe(1);
    expect(senders[0]!.emails.name).toBe('email');
    expect(app.get(QueueRegistry).names()).toEqual(['email']);
  });

  it('take options from a factory with injected providers', async () => {
    const { app, init } = await compileApp({
      imports: [
        QueueModule.forRoot(),
        QueueModule.registerQueueAsync(
          {
            name: 'email',
            imports: [ConfigModule],
            inject: [Config],
            useFactory: async (config: Config) => ({ maxPayloadBytes: config.prefix.length }),
          },
          { name: 'sms', useFactory: () => ({}) },
        ),
      ],
    });
    await init();
    expect(app.get(QueueRegistry).names()).toEqual(['email', 'sms']);
    expect(app.get(QueueRegistry).optionsOf('email')).toMatchObject({ name: 'email', maxPayloadBytes: 10 });
    expect(app.get<Queue>(getQueueToken('email')).name).toBe('email');
  });

  it.each([
    [
      undefined,
      "the result of useFactory of registerQueueAsync('email') must be an object of options, got undefined",
    ],
    [null, 'must be an object of options, got null (null)'],
    ['fast', 'must be an object of options, got "fast" (string)'],
    [{ name: 'other' }, 'returns the name "other" (string); leave it out'],
  ])('refuse a factory that returns %j', async (returned, message) => {
    const useFactory = () => returned as object;
    const queue = QueueModule.registerQueueAsync({ name: 'email', useFactory });
    expect(await bootFaults({ imports: [QueueModule.forRoot(), queue] })).toEqual([
      expect.stringContaining(message),
    ]);
  });

  it('take options from a class or an existing provider, which gets the name of the queue', async () => {
    @Injectable()
    class QueueConfig implements QueueOptionsFactory {
      constructor(private readonly config: Config) {}
      async createQueueOptions(name: string) {
        return { maxPayloadBytes: `${this.config.prefix}-${name}`.length };
      }
    }
    @Module({ imports: [ConfigModule], providers: [QueueConfig], exports: [QueueConfig] })
    class QueueConfigModule {}
    const imports = [
      QueueModule.forRoot(),
      QueueModule.registerQueueAsync(
        { name: 'email', imports: [ConfigModule], useClass: QueueConfig },
        { name: 'reports', imports: [QueueConfigModule], useExisting: QueueConfig },
      ),
    ];
    const { app, init } = await compileApp({ imports });
    await init();
    const registry = app.get(QueueRegistry);
    expect(registry.optionsOf('email').maxPayloadBytes).toBe('configured-email'.length);
    expect(registry.optionsOf('reports').maxPayloadBytes).toBe('configured-reports'.length);
  });

  it.each([
    [
      'a misspelt field',
      { name: 'email', usefactory: () => ({}) },
      'usefactory is not an option; did you mean useFactory?',
    ],
    [
      'none of the three ways',
      { name: 'email' },
      'QueueModule.registerQueueAsync() needs one of useFactory, useClass and useExisting, got 0',
    ],
    [
      'several ways',
      { name: 'email', useFactory: () => ({}), useExisting: 'x' },
      'QueueModule.registerQueueAsync() needs one of useFactory, useClass and useExisting, got 2',
    ],
    [
      'a factory that is no function',
      { name: 'email', useFactory: {} },
      'useFactory must be a function that returns the options, got {} (object)',
    ],
    [
      'an inject that is no list',
      { name: 'email', inject: 'x', useFactory: () => ({}) },
      'inject must be a list',
    ],
    ['null', null, 'registerQueueAsync() must be an object, got null'],
  ])('refuse at once %s of registerQueueAsync', (_, options, message) => {
    expect(() => QueueModule.registerQueueAsync(options as never)).toThrow(message);
  });

  it('take options of a class with getters', async () => {
    class Email {
      readonly name = 'email';
      get maxPayloadBytes() {
        return 10;
      }
    }
    class Root {
      get prefix() {
        return 'shop';
      }
    }
    const imports = [QueueModule.forRoot(new Root()), QueueModule.registerQueue(new Email())];
    const { app, init } = await compileApp({ imports });
    await init();
    expect(app.get(QueueRegistry).optionsOf('email')).toMatchObject({ maxPayloadBytes: 10 });
    expect(app.get(QueueRegistry).settingsOf('')).toMatchObject({ prefix: 'shop' });
  });

  it('refuse one name with different options, naming both', async () => {
    const root = QueueModule.forRoot();
    const first = QueueModule.registerQueue(
      { name: 'email', logs: { max: 1 } },
      { name: 'sms', defaults: { attempts: 2 } },
    );
    const second = QueueModule.registerQueueAsync({
      name: 'email',
      useFactory: () => ({ defaults: { attempts: 5, backoff: { type: 'fixed', delay: '1s' } as const } }),
    });
    expect(await bootFaults({ imports: [root, first, second] })).toEqual([
      "queue 'email' is registered twice with different options: { logs: { max: 1 } } and " +
        "{ defaults: { attempts: 5, backoff: { type: 'fixed', delay: '1s' } } }; " +
        "keep one, and leave only { name: 'email' } in the other",
    ]);
  });

  it('refuse it also within one call', async () => {
    const queues = QueueModule.registerQueue(
      { name: 'email', maxPayloadBytes: 7 },
      { name: 'email', maxPayloadBytes: 9 },
    );
    expect(await bootFaults({ imports: [QueueModule.forRoot(), queues] })).toEqual([
      "queue 'email' is registered twice with different options: { maxPayloadBytes: 7 } and { maxPayloadBytes: 9 }; " +
        "keep one, and leave only { name: 'email' } in the other",
    ]);
  });

  it.each([
    ['before', [{ name: 'email' }, { name: 'email', maxWaiting: { limit: 1, onFull: 'reject' } }]],
    ['after', [{ name: 'email', maxWaiting: { limit: 1, onFull: 'reject' } }, { name: 'email' }]],
  ] as [string, QueueOptions[]][])(
    'with only a name, %s another, refer to its options',
    async (_order, [first, second]) => {
      const { app, init } = await compileApp({
        imports: [
          QueueModule.forRoot({ connection: 'memory' }),
          QueueModule.registerQueue(first!),
          QueueModule.registerQueue(second!),
        ],
        providers: [Sender],
      });
      await init();
      const queue = app.get(Sender).emails;
      expect(queue).toBe(app.get(QueueProducer).queue('email'));
      await queue.add('welcome', {});
      await expect(queue.add('welcome', {})).rejects.toMatchObject({ code: 'GODWIT_QUEUE_FULL' });
    },
  );

  it('with only a name refer to options that come later, from a factory and for another configuration', async () => {
    const arrived = latch();
    const named = QueueModule.registerQueue({ name: 'email', defaults: undefined });
    const async = QueueModule.registerQueueAsync({
      name: 'email',
      configKey: 'mails',
      useFactory: async () => {
        await arrived.promise;
        return { logs: { max: 3 }, completed: { max: 4 } };
      },
    });
    const imports = [
      QueueModule.forRoot({ connection: 'memory' }),
      QueueModule.forRoot('mails', { connection: 'memory', maxPayloadBytes: 50 }),
      named,
      async,
    ];
    setImmediate(() => arrived.open());
    const { app, init } = await compileApp({ imports, providers: [Sender] });
    await init();
    const registry = app.get(QueueRegistry);
    expect(registry.configOf('email')).toBe('mails');
    expect(registry.optionsOf('email')).toMatchObject({ logs: { max: 3 }, maxPayloadBytes: 50 });
    expect(registry.limitsOf('email')).toMatchObject({ logsMax: 3, completedMax: 4 });
    await expect(app.get(Sender).emails.add('welcome', 'x'.repeat(60))).rejects.toMatchObject({
      code: 'GODWIT_PAYLOAD_TOO_LARGE',
    });
  });

  it('with a name and another configuration do not refer to it', async () => {
    const imports = [
      QueueModule.forRoot({ connection: 'memory' }),
      QueueModule.forRoot('mails', { connection: 'memory' }),
      QueueModule.registerQueue({ name: 'email', configKey: 'mails' }, { name: 'email', logs: { max: 3 } }),
    ];
    // Nest 11 meets the modules in another order than Nest 12.
    const options = [
      "{ configKey: 'mails' } and { logs: { max: 3 } }",
      "{ logs: { max: 3 } } and { configKey: 'mails' }",
    ];
    const possible = options.map(
      (both) =>
        `queue 'email' is registered twice with different options: ${both}; keep one, and leave only { name: 'email' } in the other`,
    );
    const faults = await bootFaults({ imports });
    expect(faults).toHaveLength(1);
    expect(possible).toContain(faults[0]);
  });

  it('accept the same options in different notations', async () => {
    const one = QueueModule.registerQueue({ name: 'email', defaults: { timeout: '2s', attempts: 4 } });
    const other = QueueModule.registerQueue({ name: 'email', defaults: { attempts: 4, timeout: 2000 } });
    const { init } = await compileApp({ imports: [QueueModule.forRoot(), one, other] });
    await expect(init()).resolves.toBeUndefined();
  });

  it('distinguish backoff functions', async () => {
    const backoff = () => 1;
    const register = (fn: () => number) =>
      QueueModule.registerQueue({ name: 'email', defaults: { backoff: fn } });
    const same = await compileApp({ imports: [QueueModule.forRoot(), register(backoff), register(backoff)] });
    await expect(same.init()).resolves.toBeUndefined();
    const faults = await bootFaults({
      imports: [QueueModule.forRoot(), register(backoff), register(() => 1)],
    });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain('[Function: backoff]');
  });

  it('do not report a queue with invalid options as not registered', async () => {
    @Processor('email')
    class EmailProcessor {
      @Handle()
      any() {}
    }
    const queue = QueueModule.registerQueue({ name: 'email', maxPayloadBytes: 0 });
    expect(
      await bootFaults({ imports: [QueueModule.forRoot(), queue], providers: [EmailProcessor, Sender] }),
    ).toEqual([
      "registerQueue('email').maxPayloadBytes must be an integer from 1 to 67108864, got 0 (number)",
    ]);
  });

  it('report unknown queues with a message', async () => {
    const { app } = await compileApp({
      imports: [QueueModule.forRoot(), QueueModule.registerQueue({ name: 'email' })],
    });
    expect(() => app.get(QueueRegistry).optionsOf('sms')).toThrow(new UnknownQueueError('sms', ['email']));
  });
});

describe('tokens', () => {
  it('are the same for a name and for a job defined for it, and refuse what is no name', () => {
    expect(getQueueToken(defineJob('email', 'welcome'))).toBe(getQueueToken('email'));
    expect(getQueueToken('email')).not.toBe(getQueueToken('sms'));
    expect(() => getQueueToken('e mail')).toThrow(InvalidQueueNameError);
    expect(() => InjectQueue(undefined as never)).toThrow(InvalidQueueNameError);
  });

  it('let a test replace a queue by its own handle', async () => {
    @Injectable()
    class Sender {
      constructor(
        @InjectQueue('email') readonly emails: unknown,
        @Inject(QUEUE_ENGINE) readonly engine: unknown,
      ) {}
    }
    const { Test } = await import('@nestjs/testing');
    const fake = {};
    const engine = { onLink: () => () => undefined };
    const module = await Test.createTestingModule({
      imports: [QueueModule.forRoot(), QueueModule.registerQueue({ name: 'email' })],
      providers: [Sender],
    })
      .overrideProvider(getQueueToken('email'))
      .useValue(fake)
      .overrideProvider(QUEUE_ENGINE)
      .useValue(engine)
      .compile();
    expect(module.get(Sender).emails).toBe(fake);
    expect(module.get(Sender).engine).toBe(engine);
    expect(module.get(QueueRegistry).names()).toEqual(['email']);
  });
});
