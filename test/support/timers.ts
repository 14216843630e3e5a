/**
 * Records which timers a test sets, and where. Node can count active timers, but Vitest always has some of its own;
 * Vitest took its functions from the globals before this file replaces them.
 */
const set = new Map<NodeJS.Timeout, Error>();
const MANY = 10_000;

for (const name of ['setTimeout', 'setInterval'] as const) {
  const original = globalThis[name] as (...args: unknown[]) => NodeJS.Timeout;
  const remembering = (...args: unknown[]) => {
    const timer = original(...args);
    if (set.size > MANY) forgetEnded();
    // Formatting a stack takes as long as a round trip to Redis, so it is done only for timers that are left.
    set.set(timer, new Error('timer'));
    return timer;
  };
  // util.promisify finds the promise form of setTimeout in a property of the function.
  Object.defineProperties(remembering, Object.getOwnPropertyDescriptors(original));
  Object.assign(globalThis, { [name]: remembering });
}

export function forgetTimers(): void {
  set.clear();
}

/**
 * ioredis gives every socket 2 seconds to close, even one that is closed already. This timer ends by itself, has no
 * effect then, and cannot be cleared from outside.
 */
const HARMLESS = /ioredis.*AbstractConnector\.js/;

/** Timers that are set and keep the process alive, each with the line that set it. */
export function timersLeft(): string[] {
  forgetEnded();
  const places = [...set].filter(([timer]) => timer.hasRef()).map(([, at]) => callerIn(at.stack ?? ''));
  return places.filter((place) => !HARMLESS.test(place)).map((place) => `timer set ${place}`);
}

function forgetEnded(): void {
  for (const timer of set.keys()) {
    // The only sign Node gives of a timer that has fired or was cleared.
    // oxlint-disable-next-line no-underscore-dangle
    if ((timer as unknown as { _destroyed: boolean })._destroyed) set.delete(timer);
  }
}

function callerIn(stack: string): string {
  // Line 0 is the message, line 1 the function above.
  return stack.split('\n')[2]?.trim() ?? 'somewhere';
}
