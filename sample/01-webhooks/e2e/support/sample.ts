import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type QueueEvent, QueueEvents } from 'godwit';
import { bootApp } from '../../../../test/support/app.js';
import { atEnd } from '../../../../test/support/cleanup.js';
import type { TestRedis } from '../../../../test/support/redis.js';
import { collect, type Collected } from '../../../../test/support/wait.js';
import { AppModule } from '../../src/app.module.js';
import { Settings } from '../../src/settings.js';
import type { DeliveryView } from '../../src/webhooks/delivery-view.js';

export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** The whole sample, as `main.ts` starts it, on a free port. */
export interface Sample {
  readonly url: string;
  readonly events: Collected<QueueEvent>;
  post(path: string, content: unknown): Promise<Response>;
  /** Asks for a delivery that must be accepted, and answers its id. */
  send(url: string, body?: unknown): Promise<string>;
  show(id: string): Promise<DeliveryView>;
  /** Resolves with the first event of a delivery that has one of these types. */
  event(id: string, ...types: QueueEvent['type'][]): Promise<QueueEvent>;
  stop(): Promise<void>;
  /** Ends every connection to the sample, as a proxy that restarts would. */
  cutConnections(): void;
}

export async function startSample(redis: TestRedis, allow: readonly string[] = []): Promise<Sample> {
  const settings = new Settings({
    REDIS_URL: redis.url,
    QUEUE_PREFIX: redis.prefix,
    WEBHOOK_SECRET: SECRET,
    WEBHOOK_ALLOW: allow.join(','),
  });
  const { app, url, get, close } = await bootApp({
    imports: [AppModule],
    http: true,
    override: (module) => module.overrideProvider(Settings).useValue(settings),
  });
  const events = collect(get(QueueEvents).of('webhooks', { since: '0' }));
  const post = (path: string, content: unknown) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof content === 'string' ? content : JSON.stringify(content),
    });
  return {
    url,
    events,
    post,
    send: async (to, body = {}) => {
      const response = await post('/webhooks', { url: to, event: 'order.paid', body });
      if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`);
      return ((await response.json()) as { id: string }).id;
    },
    show: async (id) => (await (await fetch(`${url}/webhooks/${id}`)).json()) as DeliveryView,
    event: (id, ...types) =>
      events.first((event) => event.jobId === id && types.includes(event.type), { timeout: 15_000 }),
    stop: close,
    cutConnections: () => app.getHttpServer().closeAllConnections(),
  };
}

/** A request that a target received. */
export interface Request {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server to deliver to that answers as the test says. */
export interface Target {
  readonly url: string;
  readonly host: string;
  readonly requests: Request[];
  close(): void;
}

export async function startTarget(
  answer: (response: ServerResponse, count: number) => unknown,
): Promise<Target> {
  const requests: Request[] = [];
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    requests.push({ path: request.url ?? '', headers: request.headers, body });
    answer(response, requests.length);
  };
  const server = createServer((request, response) => void receive(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  atEnd(close);
  return { url: `http://${host}/`, host, requests, close };
}
