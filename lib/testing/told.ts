import { setImmediate } from 'node:timers';
import type { QueueEngine } from '../engine/engine.js';
import type { QueueEvents } from '../events/queue-events.js';

/** A subscriber that throws may hold up its stream; a test is not held up by that. */
const PATIENCE_MS = 2_000;

/** Resolves once those who listen to events have been told all that was said so far. */
export async function awaitTold(engine: QueueEngine, reader: QueueEvents['reader']): Promise<void> {
  const until = performance.now() + PATIENCE_MS;
  for (const queue of reader.queues()) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const last = await engine.lastEvent(queue);
    while ((reader.toldUpTo(queue) ?? last) < last && performance.now() < until) {
      // oxlint-disable-next-line no-await-in-loop -- until it is so
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
