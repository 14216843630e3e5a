import { connections } from '../measure/connections.js';
import { consumeQueues, fillQueues } from '../measure/many-queues.js';
import { warmUpFor } from '../measure/produce.js';
import { Tally } from '../measure/tally.js';
import type { Lab } from '../scenario.js';
import type { Growth } from './growth.js';

const CONCURRENCY = 10;

/** Queues of one process, each with a processor. */
export const queues: Growth = {
  name: 'queues',
  title: 'Queues in one process, each with its processor',
  axis: { title: 'queues', base: 10 },
  sizes: [1, 10, 100, 1_000],
  figures: [
    { key: 'perSecond', title: 'consume, all queues together', unit: 'jobs/s', better: 'more' },
    { key: 'redisCpu', title: 'Redis CPU per consumed job', unit: 'µs', better: 'less' },
    { key: 'connections', title: 'connections to Redis', unit: '', better: 'less' },
    { key: 'start', title: 'start, until each queue has run a job', unit: 'ms', better: 'less' },
  ],
  notes: [
    `Concurrency ${CONCURRENCY} per queue, the same number of jobs in all, shared out over the queues.`,
    'The start is that of the Nest application, from its creation; Node and the modules are loaded before.',
  ],
  at: (size) => ({
    measure: async (lab) => {
      const names = Array.from({ length: size }, (_, i) => `bench-${i}`);
      return { ...(await start(lab, names)), ...(await work(lab, names)) };
    },
  }),
};

async function start(lab: Lab, names: readonly string[]): Promise<Record<string, number>> {
  await fillQueues(lab, names, names.length);
  const tally = new Tally({ warmUp: 0, jobs: names.length }, lab.progress);
  const startedAt = performance.now();
  const session = await lab.contender.open({
    url: lab.url,
    queues: names,
    work: { concurrency: CONCURRENCY, handle: tally.handle },
  });
  await tally.finished;
  const ms = performance.now() - startedAt;
  const count = await connections(lab.control);
  await session.close();
  return { start: ms, connections: count };
}

async function work(lab: Lab, names: readonly string[]): Promise<Record<string, number>> {
  await fillQueues(lab, names, warmUpFor(lab.jobs) + lab.jobs);
  const { perSecond, redisCpu } = await consumeQueues(lab, names, CONCURRENCY);
  return { perSecond, redisCpu };
}
