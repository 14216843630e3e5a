import {
  All,
  Controller,
  Inject,
  Module,
  Req,
  Res,
  UseGuards,
  VERSION_NEUTRAL,
  type DynamicModule,
  type NestModule,
  type OnModuleDestroy,
  type Type,
} from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import type { QueueEngine } from '../../contract/engine.js';
import { QUEUE_ENGINE } from '../../decorators/metadata.js';
import { QueueCore, QueueCoreModule } from '../../module/core.module.js';
import { QueueRegistry } from '../../module/queue.registry.js';
import type { PlatformRequest, PlatformResponse } from './http.js';
import {
  checkDashboardOptions,
  type CheckedDashboardOptions,
  type QueueDashboardOptions,
} from './options.js';
import { DashboardPage } from './page.js';
import { JobLinks } from './job-links.js';
import { Redactor } from './redaction.js';
import { DashboardServer } from './server.js';

const CONTROLLER = 'godwit:dashboard-controller';

/**
 * A dashboard of the queues of this application, served by the application itself on Express and Fastify: overview, queues, jobs,
 * dead jobs, schedules, workers, live events, Redis. Import it next to `QueueModule.forRoot`.
 *
 * It is closed by default: it needs `guards`, `authorize` or `access: 'public'`. Its controller is one of the application, so the
 * global prefix and global guards apply.
 *
 * @example
 * QueueDashboardModule.forRoot({
 *   path: 'admin/queues',
 *   guards: [AdminGuard],
 *   authorize: (request) => (request.user.isOperator ? 'operator' : 'viewer'),
 * })
 */
@Module({})
export class QueueDashboardModule implements NestModule, OnModuleDestroy {
  /** @internal */
  constructor(
    private readonly server: DashboardServer,
    @Inject(CONTROLLER) private readonly controller: Type,
    private readonly host: HttpAdapterHost,
  ) {}

  /**
   * The dashboard; import it once for each path.
   *
   * @throws {InvalidOptionError}
   * @example
   * QueueDashboardModule.forRoot({ guards: [AdminGuard], readOnly: true })
   */
  static forRoot(options: QueueDashboardOptions): DynamicModule {
    const checked = checkDashboardOptions(options);
    const page = new DashboardPage(checked);
    const controller = controllerOf(checked);
    return {
      module: QueueDashboardModule,
      imports: [QueueCoreModule],
      controllers: [controller],
      providers: [
        { provide: CONTROLLER, useValue: controller },
        {
          provide: DashboardServer,
          inject: [QueueCore, QUEUE_ENGINE, QueueRegistry, ApplicationConfig],
          useFactory: (
            { inspector, events, runtime, producer }: QueueCore,
            engine: QueueEngine,
            registry: QueueRegistry,
            application: ApplicationConfig,
          ) => {
            const parts = {
              engine,
              inspector,
              events,
              handleOf: (name: string) => producer.queue(name),
              queues: () => queuesOf(checked, registry, engine),
              shows: (name: string) => checked.queues === 'all' || registry.names().includes(name),
              optionsOf: (name: string) => {
                producer.queue(name);
                return { ...registry.optionsOf(name), isRegistered: registry.isRegistered(name) };
              },
              warnings: () => runtime.warnings,
              redactor: new Redactor(checked.redact),
              links: new JobLinks(checked.jobLinks),
              definitions: checked.definitions,
              maxOldestMs: checked.maxOldestMs,
            };
            return new DashboardServer(checked, parts, page, () => application.getGlobalPrefix());
          },
        },
      ],
    };
  }

  /** @internal Runs before routes are read: Express and Fastify write "every path below" in different ways. */
  configure(): void {
    const isFastify = this.host.httpAdapter?.getType() === 'fastify';
    const prototype = this.controller.prototype as object;
    All(['', isFastify ? '*' : '*rest'])(
      prototype,
      'handle',
      Object.getOwnPropertyDescriptor(prototype, 'handle')!,
    );
  }

  /** @internal Ends the open streams, because an HTTP server waits for them. */
  onModuleDestroy(): void {
    this.server.close();
  }
}

/** Names of the queues to show: the registered ones first. */
async function queuesOf(
  { queues }: CheckedDashboardOptions,
  registry: QueueRegistry,
  engine: QueueEngine,
): Promise<readonly string[]> {
  const registered = registry.names();
  if (queues === 'registered') return registered;
  const others = (await engine.processes.queues()).filter((name) => !registered.includes(name));
  return [...registered, ...others.toSorted()];
}

/** A controller for one path. It is created at run time, because decorators in the source cannot read options. */
function controllerOf({ path, guards }: CheckedDashboardOptions): Type {
  class QueueDashboardController {
    constructor(private readonly server: DashboardServer) {}

    handle(request: PlatformRequest, response: PlatformResponse): Promise<void> {
      return this.server.handle(request, response);
    }
  }
  const { prototype } = QueueDashboardController;
  Inject(DashboardServer)(QueueDashboardController, undefined, 0);
  Req()(prototype, 'handle', 0);
  Res()(prototype, 'handle', 1);
  UseGuards(...guards)(QueueDashboardController);
  Controller({ path, version: VERSION_NEUTRAL })(QueueDashboardController);
  // `@nestjs/swagger` leaves such controllers out of its documents.
  Reflect.defineMetadata('swagger/apiExcludeController', [true], QueueDashboardController);
  return QueueDashboardController;
}
