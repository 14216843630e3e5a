import { consumedFigures, fillFor, measureConsuming, type Consuming } from '../measure/consuming.js';
import { listen } from '../measure/listen.js';
import { warmUpFor } from '../measure/produce.js';
import type { Scenario } from '../scenario.js';

const working: Consuming = { concurrency: 100 };

/** The subscriber is an application of its own in the process of the worker, so the worker's CPU is that of both. */
export const watched: Scenario = {
  name: 'watched',
  title:
    'consume, no-op handler, concurrency 100, every completion heard by a subscriber in the same process',
  needs: ['events'],
  jobs: (asked) => Math.ceil(asked / 4),
  figures: [
    ...consumedFigures,
    {
      key: 'behind',
      title: 'from the last handler to the last completion heard',
      unit: 'ms',
      better: 'less',
    },
  ],
  prepare: (lab) => fillFor(lab, working),
  async measure(lab) {
    const listener = await listen(lab, warmUpFor(lab.jobs) + lab.jobs);
    const { figures, tally } = await measureConsuming(lab, working);
    return { ...figures, behind: (await listener.lastHeardAt()) - tally.lastAt };
  },
};
