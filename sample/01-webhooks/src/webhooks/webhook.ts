import { defineJob } from 'godwit';
import { z } from 'zod';

export const QUEUE = 'webhooks';

/** Maximum size of a request; the `body` inside it must be smaller. */
export const MAX_REQUEST_BYTES = 128 * 1024;
const MAX_BODY_BYTES = 64 * 1024;
const MAX_BODY_LEVELS = 64;
const MAX_URL_LENGTH = 2_048;

/** A webhook to deliver. It is validated when it is added, and again before each delivery. */
export const webhook = z.strictObject({
  url: z
    .string()
    .max(MAX_URL_LENGTH)
    .refine(isHttp, 'must be an http or https address without user and password'),
  event: z.string().regex(/^[\w.-]{1,100}$/, 'must be 1 to 100 letters, digits, ".", "_" or "-"'),
  body: z
    .unknown()
    .refine(isModest, `must be JSON of at most ${MAX_BODY_BYTES / 1024} KiB and ${MAX_BODY_LEVELS} levels`),
});

export type Webhook = z.infer<typeof webhook>;

/** The job definition: the data that a delivery needs, and its queue. */
export const delivery = defineJob(QUEUE, 'deliver', webhook);

function isHttp(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

function isModest(body: unknown): boolean {
  return (
    body !== undefined &&
    isWithinLevels(body, MAX_BODY_LEVELS) &&
    Buffer.byteLength(JSON.stringify(body)) <= MAX_BODY_BYTES
  );
}

function isWithinLevels(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isWithinLevels(inner, levels - 1));
}
