import type { OpenOptions, Payload } from '../contender.js';
import { QUEUE, type Figure, type Lab, type Scenario } from '../scenario.js';
import { fill, warmUpFor } from './produce.js';
import { meterRedis } from './redis-info.js';
import { Tally } from './tally.js';
import { settled } from './wait.js';

export const consumedFigures: readonly Figure[] = [
  { key: 'perSecond', title: 'throughput', unit: 'jobs/s', better: 'more' },
  { key: 'redisCpu', title: 'Redis CPU per job', unit: 'µs', better: 'less' },
  { key: 'commands', title: 'Redis commands per job, those in scripts too', unit: '', better: 'less' },
  { key: 'scriptCalls', title: 'script calls per 1,000 jobs', unit: '', better: 'less' },
  { key: 'processCpu', title: 'worker CPU per job', unit: 'µs', better: 'less' },
];

/** What is worked off, and how. */
export interface Consuming {
  readonly concurrency: number;
  /** Makes the handler, which tells the tally of each run once it has done its work. @default does nothing else */
  readonly handler?: (tally: Tally) => (job: Payload) => unknown;
  /** How often job `n` runs, all runs but the last one failing. @default once */
  readonly runs?: (n: number) => number;
  /** Told to the application that adds as to the one that works. */
  readonly open?: Pick<OpenOptions, 'retry' | 'keepResults'>;
}

/** A scenario that works off what another process has added. */
export function consuming(
  scenario: Pick<Scenario, 'name' | 'title' | 'needs' | 'jobs'>,
  how: Consuming,
): Scenario {
  return {
    ...scenario,
    figures: consumedFigures,
    prepare: (lab) => fillFor(lab, how),
    measure: async (lab) => (await measureConsuming(lab, how)).figures,
  };
}

/** Adds what `measureConsuming` works off, its warm-up included. */
export function fillFor(lab: Lab, { open }: Consuming): Promise<void> {
  return fill(lab, { ...open, count: warmUpFor(lab.jobs) + lab.jobs });
}

/**
 * Works off a full queue. The clock runs between the ends of jobs, so neither the start of the application nor its
 * warm-up is in it; what Redis spent covers the whole run, the last acknowledgement included.
 */
export async function measureConsuming(
  lab: Lab,
  { concurrency, handler, runs, open }: Consuming,
): Promise<{ figures: Record<string, number>; tally: Tally }> {
  const warmUp = warmUpFor(lab.jobs);
  const tally = new Tally({ warmUp, jobs: lab.jobs, runs }, lab.progress);
  const redis = await meterRedis(lab.control);
  const session = await lab.contender.open({
    url: lab.url,
    queues: [QUEUE],
    ...open,
    work: { concurrency, handle: handler?.(tally) ?? tally.handle },
  });
  await tally.finished;
  await settled(session);
  const spent = await redis();
  await session.close();
  tally.verify();

  const all = warmUp + lab.jobs;
  return {
    tally,
    figures: {
      perSecond: tally.perSecond,
      redisCpu: spent.cpuUs / all,
      commands: spent.commands / all,
      scriptCalls: (spent.scriptCalls / all) * 1_000,
      processCpu: tally.cpuUsPerJob,
    },
  };
}
