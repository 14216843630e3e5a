import { setTimeout as pause } from 'node:timers/promises';
import type { Queue } from '#lib/index.js';
import { SCHEDULE } from './queues.js';

/** Ends schedules and pauses, and waits until nothing waits or runs any more, or it takes too long. */
export async function drained(queues: ReadonlyMap<string, Queue>, drainMs: number): Promise<void> {
  for (const queue of queues.values()) {
    await queue.schedules.remove(SCHEDULE);
    await queue.resume();
  }
  const isEmpty = async () => {
    for (const queue of queues.values()) {
      const { waiting, delayed, active } = await queue.counts();
      if (waiting + delayed + active > 0) return false;
    }
    return true;
  };
  for (const end = performance.now() + drainMs; performance.now() < end && !(await isEmpty());)
    await pause(20);
}
