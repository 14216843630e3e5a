/** One command to a port of 127.0.0.1, written with spaces; its reply as it came. An error reply rejects. */
export function ask(port: number, command: string): Promise<string>;

/** Asks again until the answer is truthy, which it answers. @throws when the time is over; `what` says what for. */
export function until<T>(
  predicate: () => T | Promise<T>,
  what: string,
  timeoutMs?: number,
): Promise<NonNullable<T>>;
