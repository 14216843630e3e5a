import { setTimeout as sleep } from 'node:timers/promises';
import { QUEUE, type Lab } from '../scenario.js';

/** A subscriber that receives nothing for this long has missed an event. */
const SILENCE_MS = 5_000;

interface Listener {
  /**
   * When the last completion was received, by `performance.now()`; closes the subscriber. Rejects if unexpected ones
   * were received.
   */
  lastHeardAt(): Promise<number>;
}

/** Subscribes by an application of its own, and counts completions. */
export async function listen(lab: Lab, expected: number, silenceMs = SILENCE_MS): Promise<Listener> {
  let heard = 0;
  let lastAt = performance.now();
  const subscriber = await lab.contender.open({
    url: lab.url,
    queues: [QUEUE],
    watch() {
      heard += 1;
      lastAt = performance.now();
    },
  });
  return {
    async lastHeardAt() {
      const since = performance.now();
      while (heard < expected && performance.now() - Math.max(since, lastAt) < silenceMs) await sleep(2);
      await subscriber.close();
      if (heard !== expected) throw new Error(`${heard} completions were heard, not ${expected}`);
      return lastAt;
    },
  };
}
