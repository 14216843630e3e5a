import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { InvalidOptionError } from '../../errors.js';
import { messageOf } from '../../errors/thrown.js';
import type { Duration } from '../../job/duration.js';
import { duration, field, integer, oneOf, refuse, rule, shape } from '../../options/check.js';
import type { Alert } from './alert-state.js';
import type { Notify } from './queue-alerts.js';

/** Options of `webhook`. */
export interface WebhookOptions {
  /**
   * URL to which alerts are sent by POST; begins with `https://` or `http://`. A user and password in it are sent as the header
   * `authorization`, unless `headers` has one.
   */
  readonly url: string;
  /** `json`: the alert; `slack`: `{ text }`, which Slack, Mattermost and Discord (`/slack`) accept. @default 'json' */
  readonly format?: 'json' | 'slack';
  /** Key for the signature of each body, in the header `x-godwit-signature`. At least 16 characters. @default none */
  readonly secret?: string;
  /** Further headers, such as `authorization`. @default none */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long one attempt may take, 100 ms to 8 s. @default '5s' */
  readonly timeout?: Duration;
  /** Attempts per evaluation, 1 to 3. If all fail, it tries again after the next evaluation. @default 3 */
  readonly attempts?: number;
}

const PATH = 'webhook()';
/** Pause before the second attempt. It is doubled for each further one. */
const FIRST_PAUSE_MS = 1_000;
const LEAST_SECRET = 16;

const readOptions = shape({
  url: field('target', rule(readUrl)),
  format: field('format', oneOf('json', 'slack')),
  secret: field('secret', rule(readSecret)),
  headers: field('headers', rule(readHeaders)),
  timeout: field('timeoutMs', duration(100, 8_000)),
  attempts: field('attempts', integer(1, 3)),
});

/**
 * Sends alerts by HTTP. A request is retried after a network error, a timeout, 408, 429 and 5xx. Redirects are not followed. The
 * receiver may get an alert twice, with the same `idempotency-key`.
 *
 * @throws {InvalidOptionError}
 * @example
 * const notify = webhook({ url: 'https://hooks.example.com/queues', secret: process.env.HOOK_SECRET });
 */
export function webhook(options: WebhookOptions): Notify {
  const {
    target,
    format = 'json',
    secret,
    headers = {},
    timeoutMs = 5_000,
    attempts = 3,
  } = readOptions(options, PATH, refuse)!;
  if (target === undefined) throw new InvalidOptionError(`${PATH}.url`, 'an address', undefined);
  const { url, authorization } = target;
  return async (alert) => {
    const body = JSON.stringify(format === 'json' ? alert : { text: lineOf(alert) });
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const sent = {
      ...authorization,
      ...headers,
      'content-type': 'application/json',
      'user-agent': 'godwit',
      // With the time, because an alert that fires again before its end was delivered for certain has the same id.
      'idempotency-key': `${encodeURIComponent(alert.id)}:${alert.state}:${alert.at.getTime()}`,
      'x-godwit-timestamp': timestamp,
      ...(secret !== undefined && { 'x-godwit-signature': signatureOf(secret, timestamp, body) }),
    };
    for (let attempt = 1; ; attempt++) {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after another
      const fault = await post(url, sent, body, timeoutMs);
      if (fault === undefined) return;
      if (attempt >= attempts || fault.isFinal)
        throw withoutStack(`${new URL(url).origin} ${fault.text} (attempt ${attempt})`);
      // oxlint-disable-next-line no-await-in-loop -- the same
      await pause(FIRST_PAUSE_MS * 2 ** (attempt - 1), undefined, { ref: false });
    }
  };
}

/** Its stack would show only this file. */
function withoutStack(message: string): Error {
  const error = new Error(message);
  delete error.stack;
  return error;
}

interface Fault {
  readonly text: string;
  /** Whether the same request would be refused again. */
  readonly isFinal: boolean;
}

async function post(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  timeoutMs: number,
): Promise<Fault | undefined> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' });
    // The body of the response is not needed. It is cancelled, because an unread body keeps the connection open.
    await answer.body?.cancel();
    if (answer.ok) return undefined;
    const { status } = answer;
    return { text: `answered ${status}`, isFinal: status < 500 && status !== 408 && status !== 429 };
  } catch (error) {
    const { cause } = error as { cause?: unknown };
    return { text: `could not be reached: ${messageOf(cause ?? error)}`, isFinal: false };
  }
}

/** `sha256=` and the HMAC of the time, a dot and the body, in hex. */
function signatureOf(secret: string, timestamp: string, body: string): string {
  return `sha256=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`;
}

function lineOf({ state, severity, source, text }: Alert): string {
  const head = state === 'firing' ? `[${severity}]` : '[resolved]';
  return `${head} ${source === null ? '' : `${source}: `}${text}`;
}

/** A URL without the user and password, because `fetch` refuses them, and the header that has them. */
interface Target {
  readonly url: string;
  readonly authorization?: { readonly authorization: string };
}

function readUrl(value: unknown, path: string): Target {
  try {
    if (typeof value === 'string' && /^https?:\/\//i.test(value)) return targetOf(new URL(value));
  } catch {
    // Refused below.
  }
  // URLs of webhooks are secrets.
  throw new InvalidOptionError(path, 'an address that begins with https:// or http://', typeof value);
}

/** @throws {TypeError | URIError} */
function targetOf(url: URL): Target {
  const { username, password } = url;
  if (username === '' && password === '') return { url: url.href };
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  url.username = '';
  url.password = '';
  return {
    url: url.href,
    authorization: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` },
  };
}

function readSecret(value: unknown, path: string): string {
  if (typeof value === 'string' && value.length >= LEAST_SECRET) return value;
  throw new InvalidOptionError(path, `a string of at least ${LEAST_SECRET} characters`, typeof value);
}

function readHeaders(value: unknown, path: string): Readonly<Record<string, string>> {
  try {
    return Object.fromEntries(new Headers(value as Record<string, string>));
  } catch {
    throw new InvalidOptionError(path, 'an object with names and values of headers', typeof value);
  }
}
