import { payload, type Session } from '../contender.js';
import { connections } from '../measure/connections.js';
import { BATCH, warmUpFor } from '../measure/produce.js';
import { meterRedis } from '../measure/redis-info.js';
import { Tally } from '../measure/tally.js';
import { settled } from '../measure/wait.js';
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
  await fillAll(lab, names, names.length);
  const tally = new Tally({ warmUp: 0, jobs: names.length }, lab.progress);
  const startedAt = performance.now();
  const session = await open(lab, names, tally);
  await tally.finished;
  const ms = performance.now() - startedAt;
  const count = await connections(lab.control);
  await session.close();
  return { start: ms, connections: count };
}

async function work(lab: Lab, names: readonly string[]): Promise<Record<string, number>> {
  const warmUp = warmUpFor(lab.jobs);
  const all = warmUp + lab.jobs;
  await fillAll(lab, names, all);
  const tally = new Tally({ warmUp, jobs: lab.jobs }, lab.progress);
  const redis = await meterRedis(lab.control);
  const session = await open(lab, names, tally);
  await tally.finished;
  for (const name of names) await settled(session, name);
  const { cpuUs } = await redis();
  await session.close();
  return { perSecond: tally.perSecond, redisCpu: cpuUs / all };
}

function open({ contender, url }: Lab, names: readonly string[], { handle }: Tally): Promise<Session> {
  return contender.open({ url, queues: names, work: { concurrency: CONCURRENCY, handle } });
}

/** Every queue gets its share, and of the same numbers each a different one. */
async function fillAll(
  { contender, url, progress }: Lab,
  names: readonly string[],
  count: number,
): Promise<void> {
  const session = await contender.open({ url, queues: names });
  for (const [at, name] of names.entries()) {
    const share = Array.from({ length: Math.ceil((count - at) / names.length) }, (_, i) =>
      payload(at + i * names.length),
    );
    for (let from = 0; from < share.length; from += BATCH)
      await session.addBulk(name, share.slice(from, from + BATCH));
    progress(at, names.length);
  }
  await session.close();
}
