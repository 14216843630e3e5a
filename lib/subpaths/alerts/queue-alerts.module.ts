import {
  Inject,
  Module,
  type DynamicModule,
  type InjectionToken,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { QueueEngine } from '../../contract/engine.js';
import { QUEUE_ENGINE } from '../../decorators/metadata.js';
import { QueueCore } from '../../module/core.module.js';
import { checkAlertsOptions, QueueAlerts, type QueueAlertsOptions } from './queue-alerts.js';

/** Options of `QueueAlertsModule.forRootAsync`. */
export interface QueueAlertsAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** Providers that are passed to `useFactory`. @default [] */
  readonly inject?: InjectionToken[];
  /** Returns the options, or a promise of them. */
  readonly useFactory: (...injected: any[]) => QueueAlertsOptions | Promise<QueueAlertsOptions>;
}

const ALERTS_OPTIONS = Symbol('godwit:alerts-options');

/**
 * Alerts of the queues of the prefix. Any number of processes may import it: one of them evaluates the rules.
 *
 * @example
 * QueueAlertsModule.forRoot({
 *   rules: [{ rule: 'noWorkers', for: '1m' }, { rule: 'oldestWaiting', limit: '5m', resolve: '1m' }],
 *   notify: webhook({ url: process.env.ALERTS_URL! }),
 * })
 */
@Module({})
export class QueueAlertsModule implements OnApplicationBootstrap, OnModuleDestroy {
  /** @internal */
  constructor(@Inject(QueueAlerts) private readonly alerts: QueueAlerts) {}

  /**
   * Evaluates rules while the application runs, and makes `QueueAlerts` injectable everywhere.
   *
   * @throws {InvalidOptionError}
   */
  static forRoot(options: QueueAlertsOptions): DynamicModule {
    checkAlertsOptions(options, 'QueueAlertsModule.forRoot()');
    return QueueAlertsModule.forRootAsync({ useFactory: () => options });
  }

  /**
   * Like `forRoot`, with options from a factory, for example if `notify` calls a provider.
   *
   * @example
   * QueueAlertsModule.forRootAsync({
   *   inject: [Mailer],
   *   useFactory: (mailer: Mailer) => ({
   *     rules: [{ rule: 'dead', limit: 100 }],
   *     notify: ({ text }) => mailer.send(`on-call@example.com: ${text}`),
   *   }),
   * })
   */
  static forRootAsync({ imports = [], inject = [], useFactory }: QueueAlertsAsyncOptions): DynamicModule {
    return {
      module: QueueAlertsModule,
      global: true,
      imports,
      providers: [
        { provide: ALERTS_OPTIONS, inject, useFactory },
        {
          provide: QueueAlerts,
          inject: [QueueCore, QUEUE_ENGINE, ALERTS_OPTIONS],
          useFactory: ({ inspector }: QueueCore, engine: QueueEngine, options: unknown) =>
            new QueueAlerts({ engine, inspector }, checkAlertsOptions(options, 'QueueAlertsModule')),
        },
      ],
      exports: [QueueAlerts],
    };
  }

  /** @internal */
  onApplicationBootstrap(): void {
    this.alerts.start();
  }

  /** @internal */
  onModuleDestroy(): Promise<void> {
    return this.alerts.close();
  }
}
