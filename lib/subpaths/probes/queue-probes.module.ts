import { rmSync, writeFileSync } from 'node:fs';
import {
  Module,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { Log } from '../../contract/log.js';
import type { LinkEvent, QueueEngine } from '../../contract/engine.js';
import { QUEUE_ENGINE } from '../../decorators/metadata.js';
import { InvalidOptionError } from '../../errors.js';
import { messageOf } from '../../errors/thrown.js';
import type { QueueInspector } from '../../inspect/queue-inspector.js';
import { QueueCore } from '../../module/core.module.js';
import type { QueueRuntime } from '../../module/queue.runtime.js';
import { field, integer, refuse, rule, shape } from '../../options/check.js';
import { QueueMetrics } from '../prometheus/queue-metrics.js';
import { FORBIDDEN, HttpServer, isAllowed, metricsAnswer, type Answer, type Route } from './http-server.js';
import { scaleRoute } from './scale.js';

/** Options of `QueueProbesModule.forRoot`. */
export interface QueueProbesOptions {
  /** Port of the server; 0 takes a free port, `false` starts no server. @default 9464 */
  readonly port?: number | false;
  /** Address it listens on. @default '0.0.0.0' */
  readonly host?: string;
  /** A file that is written every 5 s while the event loop is not blocked, for probes that run a command. @default none */
  readonly file?: string;
  /** Bearer token that `/metrics` and `/scale/<queue>` require; not with `port: false`. @default none */
  readonly token?: string;
}

const PLACE = 'QueueProbesModule.forRoot()';
/** How often the file is written. */
const FILE_MS = 5_000;

const text = (what: string) =>
  rule((value: unknown, path: string) => {
    if (typeof value === 'string' && value !== '') return value;
    throw new InvalidOptionError(path, what, value);
  });
const port = integer(0, 65_535);
const readOptions = shape({
  port: field<'port', number | false>('port', (value, path, report) =>
    value === false ? false : port(value, path, report),
  ),
  host: field('host', text('an address such as 127.0.0.1')),
  file: field('file', text('the path of a file')),
  token: field('token', text('a string that is not empty')),
});

/**
 * The state of this process for an orchestrator: `/startup`, `/ready`, `/live`, and `/metrics` if `QueueMetricsModule` is
 * imported.
 *
 * @example
 * const { port } = app.get(QueueProbes); // of an application with QueueProbesModule.forRoot({ port: 0 })
 */
export class QueueProbes implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Log('QueueProbes');
  private readonly server: HttpServer | undefined;
  private timer: NodeJS.Timeout | undefined;
  private bootstrapped = false;
  private listensAt: number | null = null;
  /** By configuration, '' for the default one: whether its connection for commands is up. Empty until one has been opened or has failed. */
  private readonly links = new Map<string, boolean>();

  /** @internal */
  constructor(
    private readonly options: QueueProbesOptions & { readonly port: number | false; readonly host: string },
    private readonly runtime: Pick<QueueRuntime, 'state' | 'workers'>,
    inspector: Pick<QueueInspector, 'queues' | 'workers'>,
    private readonly engine: Pick<QueueEngine, 'onLink' | 'processes'>,
    private readonly metrics: QueueMetrics | undefined,
  ) {
    engine.onLink((event) => this.linked(event));
    const { host } = options;
    if (options.port === false) return;
    const routes = [this.probes, this.page, scaleRoute(inspector, options.token)];
    this.server = new HttpServer({ port: options.port, host, routes });
  }

  /** Port of the server; null while no server runs. */
  get port(): number | null {
    return this.listensAt;
  }

  /** Why this process is not ready; empty if it is ready. */
  get notReady(): readonly string[] {
    const { workers } = this.runtime;
    // A pause ends, so a paused process is ready. A quiet process never claims jobs again.
    const isQuiet = workers.length > 0 && workers.every((one) => one.state === 'quiet');
    const state = isQuiet ? 'quiet' : this.runtime.state;
    const isConnected = this.links.size > 0 || this.engine.processes.server !== null;
    const away = [...this.links].flatMap(([config, isUp]) => (isUp ? [] : [config])).toSorted();
    return [
      ...(this.bootstrapped ? [] : ['the application is starting']),
      ...(state === 'running' ? [] : [`the workers are ${state}`]),
      ...(isConnected ? [] : ['Redis is not connected']),
      ...away.map((config) => `Redis${config ? ` of forRoot('${config}')` : ''} is not connected`),
    ];
  }

  /** @internal */
  async onModuleInit(): Promise<void> {
    try {
      this.listensAt = (await this.server?.listen()) ?? null;
    } catch (error) {
      const { host } = this.options;
      const fault = messageOf(error);
      throw new InvalidOptionError(`${PLACE}.port`, `free on ${host} (${fault})`, this.options.port);
    }
  }

  /** @internal */
  onApplicationBootstrap(): void {
    this.bootstrapped = true;
    if (this.options.file === undefined) return;
    this.touch();
    this.timer = setInterval(() => this.touch(), FILE_MS).unref();
  }

  /** @internal Called after all other shutdown hooks, so that the probes respond while jobs end. */
  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    if (this.timer && this.options.file !== undefined) rmSync(this.options.file, { force: true });
    await this.server?.close();
    this.listensAt = null;
  }

  private linked({ role, state, config }: LinkEvent): void {
    if (role === 'command') this.links.set(config ?? '', state === 'up');
  }

  private touch(): void {
    this.logger.guard(`writing ${this.options.file!}`, () =>
      writeFileSync(this.options.file!, `${new Date().toISOString()}\n`),
    );
  }

  private readonly probes: Route = (path) => {
    switch (path) {
      case '/live':
        // This must not depend on Redis: otherwise an outage of Redis would restart every process.
        return { status: 200, body: { status: 'live' } };
      case '/startup':
        return answerOf('started', this.bootstrapped ? [] : ['the application is starting']);
      case '/ready':
        return answerOf('ready', this.notReady);
      default:
        return undefined;
    }
  };

  private readonly page: Route = (path, request) => {
    if (path !== '/metrics' || !this.metrics) return undefined;
    return isAllowed(request, this.options.token) ? metricsAnswer(this.metrics, request) : FORBIDDEN;
  };
}

function answerOf(status: string, reasons: readonly string[]): Answer {
  return reasons.length === 0
    ? { status: 200, body: { status } }
    : { status: 503, body: { status: `not ${status}`, reasons } };
}

/**
 * A server for the probes of an orchestrator, for programs without an HTTP server. Programs that have one can use
 * `godwit/terminus`.
 *
 * @example
 * ;@Module({ imports: [QueueModule.forRoot({ connection: process.env.REDIS_URL! }), QueueProbesModule.forRoot({ port: 9464 })] })
 * export class WorkerModule {}
 */
@Module({})
export class QueueProbesModule {
  /**
   * Starts the server with the application, and ends it after everything else. Import it once, next to `QueueModule.forRoot()`.
   *
   * @throws {InvalidOptionError}
   */
  static forRoot(options: QueueProbesOptions = {}): DynamicModule {
    const given = readOptions(options, PLACE, refuse)!;
    // Without its value: it is a secret.
    if (given.port === false && given.token !== undefined)
      throw new InvalidOptionError(
        `${PLACE}.port`,
        'a port if token is given: the server asks for it',
        false,
      );
    const checked = { port: 9464, host: '0.0.0.0', ...given } as const;
    return {
      module: QueueProbesModule,
      global: true,
      providers: [
        {
          provide: QueueProbes,
          inject: [QueueCore, QUEUE_ENGINE, { token: QueueMetrics, optional: true }],
          useFactory: ({ runtime, inspector }: QueueCore, engine: QueueEngine, metrics?: QueueMetrics) =>
            new QueueProbes(checked, runtime, inspector, engine, metrics),
        },
      ],
      exports: [QueueProbes],
    };
  }
}
