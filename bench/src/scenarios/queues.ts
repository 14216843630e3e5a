import type { Session } from '../contender.js';
import { connections } from '../measure/connections.js';
import { BATCH, range, warmUpFor } from '../measure/produce.js';
import { meterRedis } from '../measure/redis-info.js';
import { Tally } from '../measure/tally.js';
import { settled } from '../measure/wait.js';
import type { Lab, Scenario } from '../scenario.js';

const CONCURRENCY = 10;

export const tenQueues = queues(10);
export const hundredQueues = queues(100);

/** One process works off many full queues, each registered and processed the plain way. */
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
    prepare: (lab) => fillAll(lab, names),
    measure: (lab) => consumeAll(lab, names),
  };
}

/** As many jobs go into one queue as into any other. */
async function fillAll(lab: Lab, names: readonly string[]): Promise<void> {
  const all = warmUpFor(lab.jobs) + lab.jobs;
  const first = (queue: number): number => Math.floor((queue * all) / names.length);
  const session = await lab.contender.open({ url: lab.url, queues: names });
  for (const [i, name] of names.entries()) {
    await fillOne(session, name, first(i), first(i + 1));
    lab.progress(i + 1, names.length);
  }
  await session.close();
}

async function fillOne(session: Session, queue: string, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += BATCH) {
    await session.addBulk(queue, range(at, Math.min(to, at + BATCH)));
  }
  const waiting = await session.outstanding(queue);
  if (waiting !== to - from)
    throw new Error(`${waiting} jobs wait in ${queue} where ${to - from} were added`);
}

async function consumeAll(lab: Lab, names: readonly string[]): Promise<Record<string, number>> {
  const warmUp = warmUpFor(lab.jobs);
  const all = warmUp + lab.jobs;
  const tally = new Tally({ warmUp, jobs: lab.jobs }, lab.progress);
  const redis = await meterRedis(lab.control);
  const session = await lab.contender.open({
    url: lab.url,
    queues: names,
    work: { concurrency: CONCURRENCY, handle: tally.handle },
  });
  await tally.finished;
  for (const name of names) await settled(session, name);
  const spent = await redis();
  const open = await connections(lab.control);
  await session.close();
  tally.verify();
  return {
    perSecond: tally.perSecond,
    redisCpu: spent.cpuUs / all,
    commands: spent.commands / all,
    processCpu: tally.cpuUsPerJob,
    connections: open,
  };
}
