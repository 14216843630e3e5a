import { setTimeout as sleep } from 'node:timers/promises';
import { workTogether } from '../measure/many-processes.js';
import { fill } from '../measure/produce.js';
import { together } from '../measure/together.js';
import { windowsOf } from '../measure/windows.js';
import { QUEUE, type Lab, type Scenario } from '../scenario.js';

const CONCURRENCY = 100;
const RATE = { max: 1_000, perMs: 1_000 };
/** Windows before the measured ones, while the processes start, and after them, so that the queue is never empty in them. */
const WARM_UP = 2;
const BEHIND = 2;
const MOST_WINDOWS = 10;
/** If no event of a start arrives within this time, the start was missed. */
const SILENCE_MS = 5_000;

export const rateOfOne = limited(1);
export const rateOfEight = limited(8);

/** How exactly a rate is kept, by the clock of Redis. */
function limited(count: number): Scenario {
  const what = `${count} ${count === 1 ? 'process' : 'processes'} with concurrency ${CONCURRENCY}`;
  return {
    name: `rate-${count}`,
    title: `full queue with a rate of ${RATE.max.toLocaleString('en')} starts in ${RATE.perMs / 1_000} s, no-op handler, ${what}`,
    needs: ['rates'],
    figures: [
      { key: 'used', title: 'share of the rate that is used', unit: '%', better: 'more' },
      { key: 'smallest', title: 'fewest starts in any second', unit: '', better: 'more' },
      { key: 'largest', title: 'most starts in any second', unit: '', better: 'less' },
      { key: 'redisCpu', title: 'Redis CPU per job, events read too', unit: 'µs', better: 'less' },
      { key: 'commands', title: 'Redis commands per job, those in scripts too', unit: '', better: 'less' },
    ],
    jobs: (asked) => RATE.max * Math.min(MOST_WINDOWS, Math.ceil(asked / (10 * RATE.max))),
    prepare: (lab) => fill(lab, { count: allOf(lab) }),
    measure: (lab) => measureRate(lab, count),
  };
}

function allOf({ jobs }: Lab): number {
  return jobs + (WARM_UP + BEHIND) * RATE.max;
}

async function measureRate(lab: Lab, count: number): Promise<Record<string, number>> {
  const all = allOf(lab);
  const starts: number[] = [];
  const watcher = await lab.contender.open({
    url: lab.url,
    queues: [QUEUE],
    rate: RATE,
    watchStarts: (atMs) => starts.push(atMs),
  });
  const { records, spent } = await workTogether(lab, count, {
    jobs: all,
    concurrency: CONCURRENCY,
    rate: RATE,
  });
  await expectAllHeard(starts, all);
  await watcher.close();
  // Throws unless each job ran once.
  together(
    records.map(({ at }) => at),
    WARM_UP * RATE.max,
  );

  starts.sort((a, b) => a - b);
  const first = WARM_UP * RATE.max;
  const from = starts[first]!;
  const allowedMs = (lab.jobs / RATE.max) * RATE.perMs;
  return {
    // By the time that so many starts take: a fixed period would have one burst more or less.
    used: (allowedMs / (starts[first + lab.jobs]! - from)) * 100,
    ...windowsOf(starts, RATE.perMs, from, from + allowedMs),
    redisCpu: spent.cpuUs / all,
    commands: spent.commands / all,
  };
}

/** Resolves when a subscriber has got the events of all starts. Rejects if it missed one. */
export async function expectAllHeard(
  starts: readonly number[],
  all: number,
  silenceMs = SILENCE_MS,
): Promise<void> {
  const calledAt = performance.now();
  while (starts.length < all && performance.now() - calledAt < silenceMs) await sleep(2);
  if (starts.length !== all) throw new Error(`${starts.length} starts were heard of where ${all} jobs ran`);
}
