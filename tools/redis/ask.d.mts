/**
 * Sends one command, written with spaces, to a port of 127.0.0.1, and returns the unparsed reply. An error
 * reply rejects.
 */
export function ask(port: number, command: string): Promise<string>;

/**
 * Asks repeatedly until the answer is truthy, and returns that answer. @throws when the time is over; `what`
 * is in the message.
 */
export function until<T>(
  predicate: () => T | Promise<T>,
  what: string,
  timeoutMs?: number,
): Promise<NonNullable<T>>;
