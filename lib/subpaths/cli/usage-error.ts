/** An invalid command line; the message says why. */
export class UsageError extends Error {
  constructor(
    message: string,
    /** Printed before the message. */
    readonly usage: string,
  ) {
    super(message);
  }
}
