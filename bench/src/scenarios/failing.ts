import { consuming } from '../measure/consuming.js';

const EVERY = 10;
const DELAY_MS = 100;

/** Each failing job ends once and has run twice. The last retries are due after everything else, which is in the figures. */
export const failing = consuming(
  {
    name: 'failing',
    title: `consume, ${100 / EVERY} % fail at their first attempt and are retried after ${DELAY_MS} ms, concurrency 100`,
    needs: ['retries'],
    jobs: (asked) => Math.ceil(asked / 2),
  },
  {
    concurrency: 100,
    runs: (n) => (n % EVERY === 0 ? 2 : 1),
    open: { retry: { attempts: 3, backoff: 'fixed', delayMs: DELAY_MS } },
    handler: (tally) => (job) => {
      if (!tally.ran(job.n)) throw new Error('this attempt fails');
    },
  },
);
