/** An invalid command line. The message is the reason. */
export class UsageError extends Error {
  constructor(
    message: string,
    /** Printed before the message. */
    readonly usage: string,
  ) {
    super(message);
  }
}
