import { describe, expect, it } from 'vitest';
import { godwit } from '../../bench/src/contenders/godwit.js';
import type { Scenario } from '../../bench/src/scenario.js';
import { delayedDue } from '../../bench/src/scenarios/delayed-due.js';
import { latency } from '../../bench/src/scenarios/latency.js';
import { network, networkAddOne } from '../../bench/src/scenarios/network.js';
import { pickUpApart } from '../../bench/src/scenarios/pick-up-apart.js';
import { pickUp } from '../../bench/src/scenarios/pick-up.js';
import { twoProcesses } from '../../bench/src/scenarios/processes.js';
import { tenQueues } from '../../bench/src/scenarios/queues.js';
import { schedules } from '../../bench/src/scenarios/schedules.js';
import { useCompanions, useLab } from './companions.js';

const JOBS = 100;

const labOf = useLab();
useCompanions();

/** The figures it measures. No time, count or cost is negative. */
async function take(scenario: Scenario): Promise<Record<string, number>> {
  const lab = labOf(godwit, JOBS);
  await scenario.prepare?.(lab);
  const figures = await scenario.measure(lab);
  for (const [key, value] of Object.entries(figures)) expect(value, key).toBeGreaterThanOrEqual(0);
  return figures;
}

describe('a measurement of time or shape', { timeout: 60_000 }, () => {
  it.each([pickUp, pickUpApart, tenQueues, twoProcesses, ...network.filter((one) => one !== networkAddOne)])(
    'of $name has every figure',
    async (scenario) => {
      const figures = await take(scenario);
      expect(Object.keys(figures)).toEqual(scenario.figures.map(({ key }) => key));
    },
  );

  it('counts starts from the moment the jobs are due, and none comes before', async () => {
    const { first, p50, p99, started } = await take(delayedDue);
    expect(started).toBe(100);
    expect(p50).toBeGreaterThanOrEqual(first!);
    expect(p99).toBeGreaterThanOrEqual(p50!);
  });

  it('counts the runs of schedules', async () => {
    const { runs } = await take(schedules);
    expect(runs).toBeGreaterThan(0);
  });

  it('counts latency from the timetable, the part before the call of add included', async () => {
    const { p50, lag } = await take(latency);
    expect(p50).toBeGreaterThan(lag!);
  });

  it('has the network between the contender and Redis', async () => {
    const { ping, perSecond } = await take(networkAddOne);
    expect(ping).toBeGreaterThanOrEqual(1);
    // One call at a time, each at least 1 ms on its way.
    expect(perSecond).toBeLessThanOrEqual(1_000);
  });
});
