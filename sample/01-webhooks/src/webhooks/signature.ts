import { createHmac, timingSafeEqual } from 'node:crypto';

/*
 * Signatures as the Standard Webhooks convention has them: HMAC-SHA256 over `id.timestamp.body`. The id lets a receiver
 * notice a delivery it has had before, the timestamp ends the usefulness of a recorded one.
 */

const TOLERANCE_SECONDS = 5 * 60;

export interface SignatureHeaders {
  readonly 'webhook-id': string;
  /** Seconds since 1970. */
  readonly 'webhook-timestamp': string;
  /** `v1,` and base64; several are separated by spaces, while a secret is being replaced. */
  readonly 'webhook-signature': string;
}

export function sign(secret: string, id: string, body: string, at = new Date()): SignatureHeaders {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${hmac(secret, id, timestamp, body).toString('base64')}`,
  };
}

/** Returns null if the signature is valid, otherwise the reason why it is not. */
export function findFault(
  secret: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: string,
  now = new Date(),
): string | null {
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const signatures = headers['webhook-signature'];
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') {
    return 'the webhook headers are missing';
  }
  // The comparison is negated so that a timestamp that is no number fails too.
  if (!(Math.abs(now.getTime() / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS))
    return 'the timestamp is too old';
  const expected = hmac(secret, id, timestamp, body);
  const good = signatures.split(' ').some((entry) => {
    const [version, signature = ''] = entry.split(',');
    const given = Buffer.from(signature, 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
  return good ? null : 'the signature does not match';
}

function hmac(secret: string, id: string, timestamp: string, body: string): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
}
