import { setTimeout as sleep } from 'node:timers/promises';
import { payload } from '../contender.js';
import { longWarmUpFor } from '../measure/produce.js';
import { quantile } from '../measure/stats.js';
import { QUEUE, type Figure, type Scenario } from '../scenario.js';

export const pickUpFigures: readonly Figure[] = [
  { key: 'p50', title: 'p50', unit: 'ms', better: 'less' },
  { key: 'p99', title: 'p99', unit: 'ms', better: 'less' },
  { key: 'p999', title: 'p99.9', unit: 'ms', better: 'less' },
];

/** From the call of `add` to the start of the handler in an idle worker of the same process, one job at a time. */
export const pickUp: Scenario = {
  name: 'pick-up',
  title: 'pick-up by an idle worker, from the call of add to the start of the handler',
  figures: pickUpFigures,
  jobs: pickUpSamples,
  async measure(lab) {
    let arrived!: (at: number) => void;
    const session = await lab.contender.open({
      url: lab.url,
      queues: [QUEUE],
      work: { concurrency: 100, handle: () => arrived(performance.now()) },
    });

    const latencies: number[] = [];
    const { quick, first } = pickUpWarmUp(lab.jobs);
    for (let n = 0; n < first + lab.jobs; n++) {
      // Long enough for the worker to settle and block again. Random, so that it does not coincide with polling.
      if (n >= quick) await sleep(3 + (n % 5));
      const arrival = new Promise<number>((resolve) => (arrived = resolve));
      const calledAt = performance.now();
      const added = session.add(QUEUE, payload(n));
      const latency = (await arrival) - calledAt;
      await added;
      if (n >= first) latencies.push(latency);
      if (n % 100 === 0) lab.progress(n, first + lab.jobs);
    }
    await session.close();
    return pickUpOf(latencies);
  },
};

/** One in a thousand is beyond p99.9, so there must be more than a thousand. */
export function pickUpSamples(asked: number): number {
  return Math.min(1_200, Math.max(200, Math.ceil(asked / 50)));
}

/**
 * How many go first one upon another, and the number of the first that is measured. Between them come some with pauses, as those that
 * are measured: a worker that is idle goes other ways than a busy one, and those are compiled later.
 */
export function pickUpWarmUp(jobs: number): { readonly quick: number; readonly first: number } {
  const quick = longWarmUpFor(jobs);
  return { quick, first: quick + Math.ceil(jobs * 1.5) };
}

export function pickUpOf(latencies: readonly number[]): Record<string, number> {
  return {
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    p999: quantile(latencies, 0.999),
  };
}
