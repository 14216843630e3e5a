// By name, since tests put clocks of their own in the place of the global timers: those must not stop a store that has a clock too.
import { setImmediate } from 'node:timers';

let coming: Promise<void> | null = null;

/**
 * The next turn of the event loop. Answers come no sooner, as they would from a server: else a worker with a long line would
 * never let timers and sockets have their turn.
 */
export function nextTurn(): Promise<void> {
  return (coming ??= new Promise((resolve) => {
    setImmediate(() => {
      coming = null;
      resolve();
    });
  }));
}
