import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { Injectable } from '@nestjs/common';
import { AddressGuard } from './address-guard.js';

/** Short, so that the sample shows something soon; receivers on the internet deserve 15 s or more. */
export const ANSWER_WITHIN_MS = 2_000;
/** How much of a response is read, for the error message. */
const MAX_ANSWER_LENGTH = 200;

export interface Letter {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly reason: string;
  /** The beginning of the response body. */
  readonly text: string;
}

/** POSTs one letter, once. Redirects are not followed, because a receiver must not choose another address. */
@Injectable()
export class WebhookSender {
  constructor(private readonly addresses: AddressGuard) {}

  /**
   * @throws {AddressRefusedError} if the URL leads into a network that is not public.
   * @throws if there is no response: no connection, a timeout, or the reason of `signal`.
   */
  async post({ url, body, headers }: Letter, signal: AbortSignal): Promise<Answer> {
    const target = new URL(url);
    this.addresses.checkUrl(target);
    const limit = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const either = AbortSignal.any([signal, limit]);
    const request = (target.protocol === 'https:' ? https : http).request(target, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'godwit-sample-webhooks',
        ...headers,
      },
      lookup: this.addresses.lookupFor(target),
      // A new connection for each request, because the receiver may close a kept-alive one while we write.
      agent: false,
      signal: either,
    });
    // `once` reports errors; errors after the response do not matter.
    request.on('error', () => {});
    try {
      request.end(body);
      const [response] = (await once(request, 'response', { signal: either })) as [IncomingMessage];
      return await read(response);
    } catch (error) {
      signal.throwIfAborted();
      if (limit.aborted) throw new Error(`no answer within ${ANSWER_WITHIN_MS / 1000} s`, { cause: error });
      throw error;
    } finally {
      request.destroy();
    }
  }
}

async function read(response: IncomingMessage): Promise<Answer> {
  const { statusCode: status = 0, statusMessage: reason = '' } = response;
  let text = '';
  response.setEncoding('utf8');
  // Leaving the loop closes the connection, so that an endless response does not block the delivery.
  for await (const chunk of response) {
    text += chunk;
    if (text.length >= MAX_ANSWER_LENGTH) break;
  }
  return { status, reason, text: text.slice(0, MAX_ANSWER_LENGTH) };
}
