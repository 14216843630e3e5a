import type { QueueEngine } from '../contract/engine.js';

/** Jobs moved in one call. */
const STEP = 1000;

/** Delayed jobs that are due wait from now on, however many there are. Answers in how many ms the next one is due, null where none is. */
export async function promoteDue(engine: QueueEngine, queue: string): Promise<number | null> {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- as many as there are
    const { promoted, dueInMs } = await engine.promote(queue, STEP);
    if (promoted < STEP) return dueInMs;
  }
}
