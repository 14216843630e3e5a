import {
  Controller,
  Get,
  Headers,
  Module,
  Res,
  UseGuards,
  VERSION_NEUTRAL,
  type CanActivate,
  type DynamicModule,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { QueueEngine } from '../../contract/engine.js';
import { QUEUE_ENGINE } from '../../decorators/metadata.js';
import { QueueCore } from '../../module/core.module.js';
import { Observers } from '../../module/observers.js';
import { InvalidOptionError } from '../../errors.js';
import { boolean, field, readable, refuse, rule, shape } from '../../options/check.js';
import { QueueMetrics } from './queue-metrics.js';

/** Options of `QueueMetricsModule.forRoot`. */
export interface QueueMetricsOptions {
  /** Path of the page; `false` for none, if you serve `QueueMetrics.text()` yourself. The global prefix of the application applies. @default 'metrics' */
  readonly path?: string | false;
  /**
   * Whether the page also has the state of all queues of the prefix. Every process reports the same state: take
   * `max by (queue, state)`, or turn it off in all processes but one.
   *
   * @default true
   */
  readonly global?: boolean;
  /** Guards of the page, as of `@UseGuards`; not with `path: false`. @default none */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
}

const PLACE = 'QueueMetricsModule.forRoot()';

const readOptions = shape({
  path: field('path', rule(readPath)),
  global: field('global', boolean),
  guards: field(
    'guards',
    rule((value, path) => {
      if (readable(value, path, () => Array.isArray(value))) return value as QueueMetricsOptions['guards'];
      throw new InvalidOptionError(path, 'a list of guards', value);
    }),
  ),
});

function readPath(value: unknown, path: string): string | false {
  if (value === false || (typeof value === 'string' && /^\/?[\w./-]+$/.test(value))) return value;
  throw new InvalidOptionError(path, "a path such as 'metrics', or false for no page", value);
}

/**
 * A page of metrics for Prometheus: what this process runs, and the state of all queues.
 *
 * @example
 * ;@Module({ imports: [QueueModule.forRoot({ connection: process.env.REDIS_URL! }), QueueMetricsModule.forRoot({ path: 'metrics' })] })
 * export class AppModule {}
 */
@Module({})
export class QueueMetricsModule {
  /**
   * Serves the page and makes `QueueMetrics` injectable everywhere. Import it once, next to `QueueModule.forRoot()`.
   *
   * @throws {InvalidOptionError}
   */
  static forRoot(options: QueueMetricsOptions = {}): DynamicModule {
    const { path = 'metrics', global = true, guards = [] } = readOptions(options, PLACE, refuse)!;
    if (path === false && guards.length > 0)
      throw new InvalidOptionError(`${PLACE}.path`, 'a path if guards is given: they guard the page', path);
    return {
      module: QueueMetricsModule,
      global: true,
      controllers: path === false ? [] : [pageAt(path, guards)],
      providers: [
        {
          provide: QueueMetrics,
          inject: [QueueCore, Observers, QUEUE_ENGINE],
          useFactory: ({ inspector, runtime }: QueueCore, observers: Observers, engine: QueueEngine) => {
            const metrics = new QueueMetrics({
              inspector,
              global,
              load: () => runtime.load,
              server: () => engine.processes.server,
            });
            observers.add(metrics.work);
            engine.onLink((event) => metrics.linked(event));
            return metrics;
          },
        },
      ],
      exports: [QueueMetrics],
    };
  }
}

/** A class for each call, so that path and guards of one application are not those of another. */
function pageAt(path: string, guards: QueueMetricsOptions['guards'] & {}): Type {
  class QueueMetricsController {
    constructor(
      private readonly metrics: QueueMetrics,
      private readonly host: HttpAdapterHost,
    ) {}

    /** Interceptors of the application do not change the page: it is written by the adapter. */
    async page(accept: string | undefined, response: unknown): Promise<void> {
      const { httpAdapter } = this.host;
      const text = await this.metrics.text(accept);
      httpAdapter.setHeader(response, 'Content-Type', this.metrics.contentType(accept));
      httpAdapter.setHeader(response, 'Cache-Control', 'no-store');
      await httpAdapter.reply(response, text, 200);
    }
  }
  const { prototype } = QueueMetricsController;
  const method = Object.getOwnPropertyDescriptor(prototype, 'page')!;
  Reflect.defineMetadata('design:paramtypes', [QueueMetrics, HttpAdapterHost], QueueMetricsController);
  Headers('accept')(prototype, 'page', 0);
  Res()(prototype, 'page', 1);
  Get()(prototype, 'page', method);
  Controller({ path, version: VERSION_NEUTRAL })(QueueMetricsController);
  if (guards.length > 0) UseGuards(...guards)(QueueMetricsController);
  // Keeps it out of OpenAPI documents.
  Reflect.defineMetadata('swagger/apiExcludeController', [true], QueueMetricsController);
  return QueueMetricsController;
}
