import { workTogether } from '../measure/many-processes.js';
import { fill, warmUpFor } from '../measure/produce.js';
import { together } from '../measure/together.js';
import type { Lab, Scenario } from '../scenario.js';

const CONCURRENCY = 100;

export const twoProcesses = processes(2);
export const fourProcesses = processes(4);

/** Several processes work on one full queue. The time is between handled jobs, in whichever process. */
function processes(count: number): Scenario {
  return {
    name: `processes-${count}`,
    title: `consume, no-op handler, ${count} processes with concurrency ${CONCURRENCY} each on one queue`,
    figures: [
      { key: 'perSecond', title: 'throughput of all', unit: 'jobs/s', better: 'more' },
      { key: 'busiest', title: `share of the busiest, fair is ${100 / count}`, unit: '%', better: 'less' },
      { key: 'redisCpu', title: 'Redis CPU per job', unit: 'µs', better: 'less' },
      { key: 'commands', title: 'Redis commands per job, those in scripts too', unit: '', better: 'less' },
      { key: 'processCpu', title: 'CPU of all workers per job', unit: 'µs', better: 'less' },
    ],
    async prepare(lab) {
      await fill(lab, { count: warmUpFor(lab.jobs) + lab.jobs });
    },
    measure: (lab) => measureProcesses(lab, count),
  };
}

async function measureProcesses(lab: Lab, count: number): Promise<Record<string, number>> {
  const warmUp = warmUpFor(lab.jobs);
  const all = warmUp + lab.jobs;
  const { records, spent } = await workTogether(lab, count, { jobs: all, concurrency: CONCURRENCY });
  const { elapsedMs, busiest } = together(
    records.map(({ at }) => at),
    warmUp,
  );
  return {
    perSecond: lab.jobs / (elapsedMs / 1000),
    busiest: busiest * 100,
    redisCpu: spent.cpuUs / all,
    commands: spent.commands / all,
    processCpu: records.reduce((sum, { cpuUs }) => sum + cpuUs, 0) / all,
  };
}
