import { nearest } from '../../job/fields.js';

/** An invalid command line. The message is the reason. */
export class UsageError extends Error {
  constructor(
    message: string,
    /** Printed with the message: the usage, or where to find it. */
    readonly usage: string,
  ) {
    super(message);
  }
}

/** @throws {UsageError} */
export function cannotListen(error: Error): never {
  throw new UsageError(`cannot listen: ${error.message}; choose another --port or --host`, '');
}

/** `; did you mean queues?` if one of the known words begins with this one or is spelt like it, else an empty text. */
export function didYouMean(word: string, known: readonly string[], prefix = ''): string {
  const longer = word.length > 1 ? known.find((one) => one.startsWith(word)) : undefined;
  const near = longer ?? nearest(word, known);
  return near === undefined ? '' : `; did you mean ${prefix}${near}?`;
}
