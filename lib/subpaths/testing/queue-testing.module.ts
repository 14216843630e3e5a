import { Module, type DynamicModule } from '@nestjs/common';
import { SETTINGS, SUBSTITUTE } from '../../decorators/metadata.js';
import { Listeners } from '../../handlers/listeners/listeners.js';
import type { ResolvedModuleOptions } from '../../options/module-options.js';
import { QueueCore, QueueCoreModule } from '../../module/core.module.js';
import { coreViews } from '../../module/queue.module.js';
import { QueueRegistry } from '../../module/queue.registry.js';
import { QueueTesting } from './queue-testing.js';
import { TestBench, type QueueTestingOptions } from './test-bench.js';

/**
 * A separate module for the substitute engine, because the module of `QueueTesting` depends on providers that need the
 * substitute.
 */
@Module({})
class SubstituteModule {}

/**
 * Queues without Redis, for tests: an in-memory store with its own clock, new for each compiled module. Import it next to the
 * modules under test, with or without a `QueueModule.forRoot`. Nothing in them changes, and nothing connects.
 *
 * @example
 * const module = await Test.createTestingModule({
 *   imports: [QueueTestingModule.forRoot(), QueueModule.registerQueue({ name: 'email' })],
 *   providers: [EmailProcessor, { provide: Mailer, useValue: mailer }],
 * }).compile();
 * await module.init();
 * await module.get(QueueTesting).run(EmailProcessor, 'welcome', { to: 'ada@example.com' });
 */
@Module({})
export class QueueTestingModule {
  /**
   * Returns the module for the `imports` of a testing module. Import it once in each.
   *
   * @example
   * const imports = [AppModule, QueueTestingModule.forRoot({ now: '2026-01-01T09:00:00Z' })];
   *
   * @param options options of `QueueModule.forRoot`, which override those of the application; `autoStart`, by default false: jobs
   * run only when the test calls for it; `now`: the time of the clock at the start
   */
  static forRoot(options: QueueTestingOptions = {}): DynamicModule {
    const substitute: DynamicModule = {
      module: SubstituteModule,
      global: true,
      providers: [{ provide: SUBSTITUTE, useFactory: () => new TestBench(options) }],
      exports: [SUBSTITUTE],
    };
    return {
      module: QueueTestingModule,
      global: true,
      imports: [substitute, QueueCoreModule],
      providers: [
        ...coreViews,
        {
          provide: QueueTesting,
          inject: [SUBSTITUTE, QueueCore, QueueRegistry, Listeners, SETTINGS],
          useFactory: (
            bench: TestBench,
            { runtime, events }: QueueCore,
            registry: QueueRegistry,
            listeners: Listeners,
            settings: ResolvedModuleOptions,
          ) => new QueueTesting(bench, runtime, registry, events, listeners, settings),
        },
      ],
      exports: [QueueTesting, ...coreViews.map(({ provide }) => provide)],
    };
  }
}
