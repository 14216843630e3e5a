import { setTimeout as sleep } from 'node:timers/promises';
import { consumedFigures, fillFor, measureConsuming, type Consuming } from '../measure/consuming.js';
import { warmUpFor } from '../measure/produce.js';
import { QUEUE, type Lab, type Scenario } from '../scenario.js';

/** A subscriber that hears nothing new for so long has missed something. */
const SILENCE_MS = 5_000;

const working: Consuming = { concurrency: 100 };

/** The subscriber is an application of its own in the process of the worker, so the worker's CPU is that of both. */
export const watched: Scenario = {
  name: 'watched',
  title:
    'consume, no-op handler, concurrency 100, every completion heard by a subscriber in the same process',
  needs: ['events'],
  jobs: (asked) => Math.ceil(asked / 2),
  figures: [
    ...consumedFigures,
    { key: 'behind', title: 'last job handled → last completion heard', unit: 'ms', better: 'less' },
  ],
  prepare: (lab) => fillFor(lab, working),
  async measure(lab) {
    const hearing = await listen(lab, warmUpFor(lab.jobs) + lab.jobs);
    const { figures, tally } = await measureConsuming(lab, working);
    return { ...figures, behind: (await hearing.end()) - tally.lastAt };
  },
};

/** Counts completions; `end` says when the last one was heard, by `performance.now()`. */
async function listen(lab: Lab, expected: number) {
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
    async end(): Promise<number> {
      let before = -1;
      let since = performance.now();
      while (heard < expected && performance.now() - since < SILENCE_MS) {
        if (heard !== before) since = performance.now();
        before = heard;
        await sleep(2);
      }
      await subscriber.close();
      if (heard !== expected) throw new Error(`${heard} completions were heard of ${expected}`);
      return lastAt;
    },
  };
}
