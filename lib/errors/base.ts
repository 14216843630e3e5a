import { escaped } from './show.js';

/**
 * Base of every error of this library. Catch it and switch on `code`, which also works if two copies of the library are loaded.
 *
 * @example
 * try {
 *   await queue.add('welcome', data, { id });
 * } catch (error) {
 *   if (!(error instanceof GodwitError)) throw error;
 *   if (error.code === 'GODWIT_REDIS_UNAVAILABLE') console.warn('add it again, with the same id');
 * }
 */
export abstract class GodwitError extends Error {
  /** Stable, upper-case, starts with `GODWIT_`. */
  abstract readonly code: string;

  /** @internal True if the message must not be escaped, because the caller wrote it or it is escaped already. */
  protected static readonly keepsText: boolean = false;

  constructor(message: string, options?: { cause?: unknown }) {
    super(new.target.keepsText ? message : escaped(message), options);
    this.name = new.target.name;
  }
}
