import { consumeQueues, fillQueues } from '../measure/many-queues.js';
import { warmUpFor } from '../measure/produce.js';
import type { Scenario } from '../scenario.js';

const CONCURRENCY = 10;

export const tenQueues = queues(10);
export const hundredQueues = queues(100);

/** One process works on many full queues, each registered and processed in the simplest way. */
function queues(count: number): Scenario {
  const names = Array.from({ length: count }, (_, i) => `bench-${i}`);
  return {
    name: `queues-${count}`,
    title: `consume, no-op handler, ${count} queues with concurrency ${CONCURRENCY} each in one process`,
    figures: [
      { key: 'perSecond', title: 'throughput of all', unit: 'jobs/s', better: 'more' },
      { key: 'redisCpu', title: 'Redis CPU per job', unit: 'µs', better: 'less' },
      { key: 'commands', title: 'Redis commands per job, those in scripts too', unit: '', better: 'less' },
      { key: 'processCpu', title: 'worker CPU per job', unit: 'µs', better: 'less' },
      { key: 'connections', title: 'connections', unit: '', better: 'less' },
    ],
    prepare: (lab) => fillQueues(lab, names, warmUpFor(lab.jobs) + lab.jobs),
    measure: (lab) => consumeQueues(lab, names, CONCURRENCY),
  };
}
