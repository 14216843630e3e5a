import type { Session } from '../contender.js';
import type { Lab } from '../scenario.js';
import { connections } from './connections.js';
import { BATCH, range, warmUpFor } from './produce.js';
import { meterRedis } from './redis-info.js';
import { Tally } from './tally.js';
import { settled } from './wait.js';

/** As many jobs go into one queue as into any other. */
export async function fillQueues(lab: Lab, names: readonly string[], count: number): Promise<void> {
  const first = (queue: number): number => Math.floor((queue * count) / names.length);
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

/** Works off full queues of one process, the warm-up included, as `measureConsuming` does with one. */
export async function consumeQueues(
  lab: Lab,
  names: readonly string[],
  concurrency: number,
): Promise<Record<'perSecond' | 'redisCpu' | 'commands' | 'processCpu' | 'connections', number>> {
  const warmUp = warmUpFor(lab.jobs);
  const all = warmUp + lab.jobs;
  const tally = new Tally({ warmUp, jobs: lab.jobs }, lab.progress);
  const redis = await meterRedis(lab.control);
  const session = await lab.contender.open({
    url: lab.url,
    queues: names,
    work: { concurrency, handle: tally.handle },
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
