import { request } from 'node:http';
import { Module, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { INestApplication } from '@nestjs/common';
import { QueueDashboardModule, type QueueDashboardOptions } from '#lib/subpaths/dashboard.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { QueueModule } from '#lib/module/queue.module.js';
import type { QueueModuleOptions, QueueOptions } from '#lib/options/module-options.js';
import type { Queue } from '#lib/producer/queue.js';
import { atEnd } from './cleanup.js';
import { Logs, PATIENT, processorOf, type Handlers } from './queue-app.js';
import type { TestRedis } from './redis.js';
import { until } from './wait.js';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The text as JSON. */
  readonly body: any;
}

export interface DashboardApp {
  readonly app: INestApplication;
  /** Address of the dashboard, with a slash at the end. */
  readonly url: string;
  readonly queue: Queue;
  readonly queueOf: (name: string) => Queue;
  readonly logs: Logs;
  /** A request with exactly this path: `fetch` would normalize it. */
  readonly ask: (method: string, path: string, options?: AskOptions) => Promise<Answer>;
  /** A call of the API, like the page makes it. */
  readonly api: (method: string, path: string, body?: unknown) => Promise<Answer>;
  /** Follows the events after the given one; `query` begins with `?`. */
  readonly follow: (since: string, query?: string) => Promise<Stream>;
}

/** An open stream of events. */
interface Stream {
  readonly headers: Answer['headers'];
  /** Resolves with everything received so far, as soon as it contains this text. */
  readonly until: (text: string) => Promise<string>;
  /** Resolves when the server ends it. */
  readonly ended: Promise<void>;
  readonly close: () => void;
}

interface AskOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface DashboardAppOptions extends Pick<ModuleMetadata, 'imports' | 'providers'> {
  readonly platform?: 'express' | 'fastify';
  readonly dashboard?: QueueDashboardOptions;
  readonly handlers?: Handlers;
  /** Options of the queue `work`. */
  readonly queue?: Omit<QueueOptions, 'name'>;
  /** Queues besides `work`. */
  readonly queues?: readonly string[];
  readonly root?: QueueModuleOptions;
  readonly configure?: (app: INestApplication) => void;
  /** Path of the dashboard behind the address of the application. @default '/queues/' */
  readonly at?: string;
}

/** Headers that the page sends with each call. */
export const OWN = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' } as const;

/** An application with the queue `work` and a dashboard, listening on a port. */
export async function bootDashboard(
  redis: Pick<TestRedis, 'url' | 'prefix'>,
  options: DashboardAppOptions = {},
): Promise<DashboardApp> {
  const {
    platform = 'express',
    dashboard = { access: 'public' },
    handlers,
    queues = [],
    imports = [],
  } = options;
  const logs = new Logs();
  @Module({
    imports: [
      QueueModule.forRoot({
        connection: redis.url,
        prefix: redis.prefix,
        shutdown: { timeout: '3s', grace: '100ms' },
        log: { failures: false, deaths: false },
        ...options.root,
      }),
      QueueModule.registerQueue({ name: 'work', ...options.queue }, ...queues.map((name) => ({ name }))),
      QueueDashboardModule.forRoot(dashboard),
      ...imports,
    ],
    providers: [...(handlers ? [processorOf('work', handlers)] : []), ...(options.providers ?? [])],
  })
  class AppModule {}
  const app =
    platform === 'express'
      ? await NestFactory.create(AppModule, { logger: logs })
      : await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter(), { logger: logs });
  atEnd(() => app.close());
  options.configure?.(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as { port: number };
  const at = options.at ?? '/queues/';
  const ask = (method: string, path: string, { headers = {}, body }: AskOptions = {}) =>
    send(port, method, `${at}${path}`, headers, body);
  return {
    app,
    url: `http://127.0.0.1:${port}${at}`,
    queue: app.get(getQueueToken('work')),
    queueOf: (name) => app.get(getQueueToken(name)),
    logs,
    ask,
    follow: (since, query = '') => follow(port, `${at}api/v1/events${query}`, since),
    api: (method, path, body) =>
      ask(
        method,
        `api/v1/${path}`,
        method === 'GET' ? {} : { headers: OWN, body: JSON.stringify(body ?? {}) },
      ),
  };
}

function send(
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const call = request(
      { host: '127.0.0.1', port, method, path, headers: { ...headers, ...length, connection: 'close' } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode!, headers: response.headers, text, body: parse(text) });
        });
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}

function follow(port: number, path: string, since: string): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const headers = { 'last-event-id': since };
    const call = request({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      // It is cut off at its close.
      response.on('error', () => {});
      resolve({
        headers: response.headers,
        until: (wanted) => until(() => text.includes(wanted) && text, { timeout: 15_000, what: wanted }),
        ended: new Promise((end) => response.on('close', end)),
        close: () => response.destroy(),
      });
    });
    call.on('error', reject);
    call.end();
  });
}

/** Waits until the job is dead. */
export const dead = (queue: Queue, id: string) =>
  until(async () => (await queue.get(id))?.state === 'dead', PATIENT);

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
