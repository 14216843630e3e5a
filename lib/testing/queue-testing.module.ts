import { Module, type DynamicModule } from '@nestjs/common';
import { SETTINGS, SUBSTITUTE } from '../decorators/metadata.js';
import { Listeners } from '../handlers/listeners/listeners.js';
import type { ResolvedModuleOptions } from '../options/module-options.js';
import { QueueCore, QueueCoreModule } from '../module/core.module.js';
import { coreViews } from '../module/queue.module.js';
import { QueueRegistry } from '../module/queue.registry.js';
import { QueueTesting } from './queue-testing.js';
import { TestBench, type QueueTestingOptions } from './test-bench.js';

/** Apart from the rest, which needs what this is needed for. */
@Module({})
class SubstituteModule {}

/**
 * Queues without Redis, for tests: an in-memory store with a clock of its own, new for each compiled module. Import it next to the
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
   * For the `imports` of a testing module; once in each.
   *
   * @example
   * const imports = [AppModule, QueueTestingModule.forRoot({ now: '2026-01-01T09:00:00Z' })];
   *
   * @param options those of `QueueModule.forRoot`, which win over those of the application; `autoStart`, by default false: nothing runs
   *   until the test says so; `now`: the time of the clock at the start
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
