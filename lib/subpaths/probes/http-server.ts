import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The response of a path. */
export interface Answer {
  readonly status: number;
  /** A value that is sent as JSON, or a text with its content type. */
  readonly body: object | string;
  readonly type?: string;
}

export interface Route {
  /** Returns the response for a known path; undefined for others. */
  (path: string, request: IncomingMessage, query: URLSearchParams): Promise<Answer> | Answer | undefined;
}

interface HttpServerOptions {
  readonly port: number;
  readonly host: string;
  readonly routes: readonly Route[];
}

/** A small HTTP server for probes and scrapers: GET and HEAD only. */
export class HttpServer {
  private readonly server: Server;

  constructor(private readonly options: HttpServerOptions) {
    this.server = createServer((request, response) => {
      void this.answer(request).then(({ status, body, type = 'application/json; charset=utf-8' }) => {
        const text = typeof body === 'string' ? body : `${JSON.stringify(body)}\n`;
        response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' });
        response.end(request.method === 'HEAD' ? undefined : text);
      });
    });
    this.server.keepAliveTimeout = 5_000;
  }

  /** Resolves to the port. Rejects with the error of Node if the port is taken. */
  listen(): Promise<number> {
    const { port, host } = this.options;
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, host, () => {
        this.server.off('error', reject);
        resolve((this.server.address() as AddressInfo).port);
      });
    });
  }

  /** Ends open connections too. Never rejects. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  private async answer(request: IncomingMessage): Promise<Answer> {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return { status: 405, body: { error: 'only GET and HEAD' } };
    const address = addressOf(request);
    if (address === null) return { status: 400, body: { error: 'the path is not valid' } };
    try {
      for (const route of this.options.routes) {
        const answer = route(address.path, request, address.query);
        if (answer) return await answer;
      }
      return { status: 404, body: { error: 'there is no such page' } };
    } catch (error) {
      return { status: 500, body: { error: (error as Error).message } };
    }
  }
}

/** Null if the path is not valid. */
function addressOf({ url = '/' }: IncomingMessage): { path: string; query: URLSearchParams } | null {
  try {
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    return { path: decodeURIComponent(pathname), query: searchParams };
  } catch {
    return null;
  }
}

/** Whether a request has this bearer token. True for every request if no token is required. */
export function isAllowed({ headers }: IncomingMessage, token: string | undefined): boolean {
  if (token === undefined) return true;
  const given = /^Bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1] ?? '';
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(token));
}

export const FORBIDDEN: Answer = { status: 401, body: { error: 'the bearer token is missing or wrong' } };

/** A function that returns a page of metrics. */
interface MetricsPage {
  text(accept?: string): Promise<string>;
  contentType(accept?: string): string;
}

/** The page of metrics in the format that the request asks for. */
export async function metricsAnswer(page: MetricsPage, { headers }: IncomingMessage): Promise<Answer> {
  const { accept } = headers;
  return { status: 200, body: await page.text(accept), type: page.contentType(accept) };
}
