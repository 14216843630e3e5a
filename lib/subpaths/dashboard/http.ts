import type { IncomingMessage, ServerResponse } from 'node:http';
import { GodwitError, UnknownQueueError } from '../../errors.js';
import { messageForOperator } from '../../errors/for-operators.js';
import { quoted } from '../../job/text.js';
import { decodeSegment } from './segments.js';

/** The requests and responses of Node that Express and Fastify wrap. */

export type RawResponse = ServerResponse;

/** A request as Express and Fastify pass it to a controller. */
export interface PlatformRequest {
  readonly method: string;
  readonly url: string;
  readonly originalUrl?: string;
  readonly headers: IncomingMessage['headers'];
  readonly body?: unknown;
  readonly raw?: IncomingMessage;
}

/** A response of Express, or a reply of Fastify. */
export interface PlatformResponse {
  readonly raw?: RawResponse;
  hijack?(): void;
}

/** Largest body of a request. */
const MAX_BODY_BYTES = 1_048_576;

/** The answer to a request that cannot be served. */
export class HttpFault extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** The answer to a person for whom this queue does not exist. */
export function noQueue(name: string): HttpFault {
  return new HttpFault(404, new UnknownQueueError(name, []).code, `this dashboard has no queue '${name}'`);
}

const STATUS_OF: Readonly<Record<string, number>> = {
  GODWIT_JOB_NOT_FOUND: 404,
  GODWIT_PROCESS_NOT_FOUND: 404,
  GODWIT_SCHEDULE_NOT_FOUND: 404,
  GODWIT_BULK_ACT_NOT_FOUND: 404,
  GODWIT_UNKNOWN_QUEUE: 404,
  GODWIT_WRONG_STATE: 409,
  GODWIT_DUPLICATE_JOB: 409,
  GODWIT_QUEUE_FULL: 409,
  GODWIT_GROUP_FULL: 409,
  GODWIT_PAYLOAD_TOO_LARGE: 413,
  GODWIT_REDIS_UNAVAILABLE: 503,
  GODWIT_ENQUEUE_BUFFER_FULL: 503,
  GODWIT_NOT_REPLICATED: 503,
  GODWIT_NOT_RUNNING: 503,
  GODWIT_REDIS_REFUSED: 503,
  GODWIT_UNSUPPORTED_REDIS: 503,
  GODWIT_QUEUE_FORMAT: 503,
  GODWIT_INVALID_OPTION: 400,
  GODWIT_INVALID_JOB_ID: 400,
  GODWIT_INVALID_JOB_NAME: 400,
  GODWIT_INVALID_QUEUE_NAME: 400,
  GODWIT_INVALID_PAYLOAD: 400,
  GODWIT_SCHEMA_VIOLATION: 400,
};

/**
 * The HTTP response to an error. Undefined for an unexpected error, whose details must not leave the server.
 *
 * @param effect the effect of the act, if the error does not contain it.
 */
export function faultOf(error: unknown, effect?: string): HttpFault | undefined {
  if (error instanceof HttpFault) return error;
  // `authorize` may throw an exception of Nest.
  if (isHttpException(error)) return new HttpFault(error.getStatus(), 'REFUSED', error.message);
  if (!(error instanceof GodwitError)) return undefined;
  const status = STATUS_OF[error.code];
  if (status === undefined) return undefined;
  return new HttpFault(status, error.code, messageForOperator(error, 'dashboard', effect));
}

/** Whether it is an `HttpException` of Nest, which `godwit serve` does not load. */
export function isHttpException(error: unknown): error is Error & { getStatus(): number } {
  return error instanceof Error && typeof (error as { getStatus?: unknown }).getStatus === 'function';
}

/** The decoded segments of a path. */
export function segmentsOf(pathname: string): string[] {
  try {
    return pathname
      .split('/')
      .filter((part) => part !== '')
      .map(decodeSegment);
  } catch {
    throw new HttpFault(400, 'BAD_PATH', 'the path has a % that encodes nothing');
  }
}

/** The fields of a query, each at most once. */
export function queryOf(params: URLSearchParams): Record<string, string> {
  const found: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [key, value] of params) {
    if (key in found)
      throw new HttpFault(400, 'BAD_QUERY', `the query has ${JSON.stringify(key.slice(0, 60))} twice`);
    found[key] = value;
  }
  return found;
}

/**
 * Refuses a change that comes from a page of another origin. A browser sends `Sec-Fetch-Site` to secure addresses, and `Origin`
 * to all; a form can neither send JSON nor set these headers.
 */
export function checkOrigin({ headers }: PlatformRequest): void {
  if (!/^application\/json\b/i.test(headers['content-type'] ?? ''))
    throw new HttpFault(403, 'NOT_JSON', 'changes are sent as content-type: application/json');
  const site = headers['sec-fetch-site'];
  const isOwn = site === undefined ? isHost(headers.origin, headers.host) : site === 'same-origin';
  if (isOwn) return;
  // Without `Sec-Fetch-Site` the page may be the right one, behind a proxy that replaces `Host`.
  const why =
    site === undefined && headers.origin !== undefined
      ? `; origin ${quoted(headers.origin.slice(0, 200))} is not host ${quoted((headers.host ?? '').slice(0, 200))}: a proxy must pass the host and port of the browser (nginx: proxy_set_header Host $http_host)`
      : '; a script sends the header sec-fetch-site: same-origin';
  throw new HttpFault(403, 'OTHER_ORIGIN', `changes are only taken from the pages of this dashboard${why}`);
}

function isHost(origin: string | undefined, host: string | undefined): boolean {
  try {
    return origin !== undefined && new URL(origin).host === host;
  } catch {
    return false;
  }
}

/** The JSON body of a request: from the parser of the application, or read from the socket if there is no parser. */
export async function bodyOf(request: PlatformRequest): Promise<Record<string, unknown>> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > MAX_BODY_BYTES) throw tooLarge();
  const raw = request.raw ?? (request as unknown as IncomingMessage);
  const body = request.body ?? (raw.readableEnded ? {} : parse(await readAll(raw)));
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return body as Record<string, unknown>;
  throw new HttpFault(400, 'BAD_BODY', 'the body must be a JSON object');
}

async function readAll(raw: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of raw as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    throw new HttpFault(400, 'BAD_BODY', 'the body is not valid JSON');
  }
}

function tooLarge(): HttpFault {
  return new HttpFault(413, 'BODY_TOO_LARGE', 'a body has at most 1 MiB');
}

/** Headers of every answer. */
const SAFE = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

export function send(
  response: RawResponse,
  status: number,
  headers: Readonly<Record<string, string | number>>,
  body: string | Buffer,
): void {
  if (response.headersSent || response.destroyed) return;
  for (const [name, value] of Object.entries({ ...SAFE, ...headers })) response.setHeader(name, value);
  // That of a 304 would be the length of the body that it leaves out.
  if (status !== 304) response.setHeader('content-length', Buffer.byteLength(body));
  response.statusCode = status;
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

export function sendJson(response: RawResponse, status: number, value: unknown): void {
  const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };
  send(response, status, headers, JSON.stringify(value));
}
