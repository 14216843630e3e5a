/** Base of every error this library throws. Catch it, and switch on `code`. */
export abstract class GodwitError extends Error {
  /** Stable, upper-case, starts with `GODWIT_`. */
  abstract readonly code: string;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}
