import { setTimeout as sleep } from 'node:timers/promises';
import { consuming } from '../measure/consuming.js';
import type { Scenario } from '../scenario.js';

const CONCURRENCY = 100;
const BURN_MS = 0.2;

/** Handlers that take time: the queue has to keep all slots full, and cannot do better than the ceiling in the title. */
export const await1ms = awaiting(1, (asked) => Math.ceil(asked / 4));
export const await50ms = awaiting(50, (asked) => Math.ceil(asked / 20));

export const burn: Scenario = consuming(
  {
    name: 'burn',
    title: `consume, handler keeps the thread busy for ${BURN_MS} ms, concurrency ${CONCURRENCY}, at most ${perSecond(BURN_MS, 1)}`,
    jobs: (asked) => Math.ceil(asked / 10),
  },
  {
    concurrency: CONCURRENCY,
    handler: (tally) => (job) => {
      const startedAt = performance.now();
      while (performance.now() - startedAt < BURN_MS);
      tally.handle(job);
    },
  },
);

function awaiting(ms: number, jobs: Scenario['jobs']): Scenario {
  return consuming(
    {
      name: `await-${ms}ms`,
      title: `consume, handler awaits ${ms} ms, concurrency ${CONCURRENCY}, at most ${perSecond(ms, CONCURRENCY)}`,
      jobs,
    },
    {
      concurrency: CONCURRENCY,
      handler: (tally) => async (job) => {
        await sleep(ms);
        tally.handle(job);
      },
    },
  );
}

function perSecond(ms: number, slots: number): string {
  return `${((slots / ms) * 1_000).toLocaleString('en')}/s`;
}
