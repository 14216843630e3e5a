import { within } from '../contract/retry.js';
import type { QueueEvents } from '../events/queue-events.js';
import type { Listeners } from '../handlers/listeners/listeners.js';

/** A listener may have much to do, and a test is not held up by that. */
const PATIENCE_MS = 2_000;

/** Resolves once those who listen to events have been told all that was said so far, and `@OnQueueEvent` methods have done with it. */
export function awaitTold(events: QueueEvents, listeners: Listeners): Promise<void> {
  return within(PATIENCE_MS, tellAll(events, listeners));
}

async function tellAll(events: QueueEvents, listeners: Listeners): Promise<void> {
  await Promise.all(events.reader.queues().map((queue) => events.caughtUp(queue)));
  await listeners.idle();
}
