/** An invalid command line; the message says why. */
export class UsageError extends Error {
  constructor(
    message: string,
    /** How it is written right. */
    readonly usage: string,
  ) {
    super(message);
  }
}
