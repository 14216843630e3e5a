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

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}
