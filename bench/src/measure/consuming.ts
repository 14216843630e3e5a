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

/** The jobs that are processed, and how. */
export interface Consuming {
  readonly concurrency: number;
  /** Makes the handler, which reports each run to the tally at its end. @default one that does nothing else */
  readonly handler?: (tally: Tally) => (job: Payload) => unknown;
  /** How often job `n` runs; all runs but the last one fail. @default once */
  readonly runs?: (n: number) => number;
  /** Passed to the application that adds and to the one that works. */
  readonly open?: Pick<OpenOptions, 'retry' | 'keepResults' | 'groups'>;
}

/** A scenario that processes jobs which another process has added. */
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

/** Adds the jobs for `measureConsuming`, with those of its warm-up. */
export function fillFor(lab: Lab, { open }: Consuming): Promise<void> {
  return fill(lab, { ...open, count: warmUpFor(lab.jobs) + lab.jobs });
}

/**
 * Processes a full queue. The time is between the ends of jobs, so it includes neither the start of the application nor
 * the warm-up. The cost of Redis covers the whole run, with the last acknowledgement.
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
