import { Redis } from 'ioredis';
import { startRedis } from '../../../tools/redis.mjs';
import type { OpenOptions } from '../contender.js';
import { inBatches, measureProducing, type Send } from '../measure/produce.js';
import type { Figure, Lab, Scenario } from '../scenario.js';
import { inLanes } from './add-in-flight.js';
import { oneByOne } from './add-one.js';

type Durability = NonNullable<OpenOptions['durability']>;

/** Each manner of adding, and which part of the jobs is enough for it. */
const MANNERS: readonly { key: string; title: string; send: Send; part: number }[] = [
  { key: 'Bulk', title: 'in bulk, all jobs', send: inBatches, part: 1 },
  { key: 'InFlight', title: '100 calls in flight, half of the jobs', send: inLanes, part: 2 },
  { key: 'One', title: 'one call at a time, a twentieth', send: oneByOne, part: 20 },
];
const DURABILITIES: readonly Durability[] = ['local', 'replicated'];

/** Measures the cost of waiting for a replica. The server has a replica in both cases. */
export const addReplicated: Scenario = {
  name: 'add-replicated',
  title: 'add while the server has a replica: local, and confirmed by the replica',
  needs: ['replicas'],
  figures: MANNERS.flatMap(({ key, title }) =>
    DURABILITIES.map((durability): Figure => ({
      key: `${durability}${key}`,
      title: `${title}, ${durability}`,
      unit: 'jobs/s',
      better: 'more',
    })),
  ),
  async measure(lab) {
    const { hostname, port } = new URL(lab.url);
    const replica = await startRedis({ private: true, args: ['--replicaof', `${hostname} ${port}`] });
    try {
      await inStep(lab.control);
      return await measureAll(lab);
    } finally {
      await replica.stop();
    }
  },
};

async function measureAll(lab: Lab): Promise<Record<string, number>> {
  const measured: Record<string, number> = {};
  for (const { key, send, part } of MANNERS) {
    for (const durability of DURABILITIES) {
      await lab.control.flushall('SYNC');
      await inStep(lab.control);
      const jobs = Math.ceil(lab.jobs / part);
      const { perSecond } = await measureProducing(lab, jobs, send, { durability });
      measured[`${durability}${key}`] = perSecond!;
    }
  }
  return measured;
}

/** The replica has everything. */
async function inStep(control: Redis): Promise<void> {
  do await control.set('bench:in-step', '1', 'PX', 1);
  while ((await control.wait(1, 500)) < 1);
}
