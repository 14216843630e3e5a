import { setTimeout as sleep } from 'node:timers/promises';
import { QUEUE } from '../scenario.js';
import type { Session } from '../contender.js';

/** Resolves when every job is acknowledged. Has no time limit: the runner ends a process without progress. */
export async function settled(session: Session, queue = QUEUE): Promise<void> {
  while ((await session.outstanding(queue)) > 0) await sleep(2);
}

/** The value as soon as it has been the same for `forMs`. */
export async function steady(read: () => Promise<number>, forMs: number): Promise<number> {
  let value = await read();
  let since = performance.now();
  while (performance.now() - since < forMs) {
    await sleep(50);
    const next = await read();
    if (next !== value) {
      value = next;
      since = performance.now();
    }
  }
  return value;
}
