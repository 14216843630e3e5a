import { show } from './show.js';

const MAX_MESSAGE = 4096;

/*
 * What can be said of anything that was thrown. That may be no error, no object at all, or one that throws again when it is
 * looked at: nothing here throws.
 */

/** Its message, for a sentence; where it has none, what it is. */
export function messageOf(thrown: unknown): string {
  const message = read(thrown, 'message');
  return typeof message === 'string' ? message.slice(0, MAX_MESSAGE) : show(thrown);
}

/** Where it was thrown. */
export function stackOf(thrown: unknown): string | undefined {
  const stack = read(thrown, 'stack');
  return typeof stack === 'string' ? stack : undefined;
}

/** A field of it, or of whatever was returned. */
export function read(value: unknown, field: string): unknown {
  try {
    return (value as Readonly<Record<string, unknown>> | null | undefined)?.[field];
  } catch {
    return undefined;
  }
}
