import { show } from './show.js';
import type { RedisUnavailableError } from './store.js';

/*
 * Reads anything that was thrown. It may be no error, no object, or an object that throws when it is read: nothing here throws.
 */

/** Maximum number of characters of a message. */
export const MAX_MESSAGE = 4096;

/** The message of a thrown value; a description of the value if it has none. */
export function messageOf(thrown: unknown): string {
  const message = read(thrown, 'message');
  return typeof message === 'string' ? message.slice(0, MAX_MESSAGE) : show(thrown);
}

/** The message without its last part, whether anything was changed: for reads, and for calls that come after a change. */
export function withoutEffect({ message }: RedisUnavailableError): string {
  return message.split('; ')[0]!;
}

/** Its stack. */
export function stackOf(thrown: unknown): string | undefined {
  const stack = read(thrown, 'stack');
  return typeof stack === 'string' ? stack : undefined;
}

/** A field of any value; undefined if reading it throws. */
export function read(value: unknown, field: string): unknown {
  try {
    return (value as Readonly<Record<string, unknown>> | null | undefined)?.[field];
  } catch {
    return undefined;
  }
}
