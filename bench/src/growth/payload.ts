import { payload as small, type Payload } from '../contender.js';
import { connections } from '../measure/connections.js';
import { BATCH, range, warmUpFor } from '../measure/produce.js';
import { meterRedis, usedMemory } from '../measure/redis-info.js';
import { Tally } from '../measure/tally.js';
import { settled } from '../measure/wait.js';
import { QUEUE, type Lab } from '../scenario.js';
import type { Growth } from './growth.js';

const CONCURRENCY = 100;
/** Bytes of data of one measurement: fewer jobs if they are large. */
const MOST_BYTES = 128 * 2 ** 20;
/** Data of one call, a thousand jobs at most. */
const CALL_BYTES = 2 ** 20;

/** The data of a job. */
export const payload: Growth = {
  name: 'payload',
  title: 'Size of the payload',
  axis: { title: 'payload as JSON', unit: 'bytes', base: 4 },
  sizes: [64, 256, 1_024, 4_096, 16_384, 102_400],
  figures: [
    { key: 'addBulk', title: 'add in bulk, one call at a time', unit: 'jobs/s', better: 'more' },
    { key: 'consume', title: `consume, concurrency ${CONCURRENCY}`, unit: 'jobs/s', better: 'more' },
    { key: 'redisCpu', title: 'Redis CPU per consumed job', unit: 'µs', better: 'less' },
    { key: 'memory', title: 'Redis memory per waiting job', unit: 'bytes', better: 'less' },
  ],
  notes: ['A call of bulk takes 1,000 jobs or 1 MiB, whichever is less; a measurement 128 MiB at most.'],
  at: (size) => ({
    jobs: (asked) => Math.min(asked, Math.floor(MOST_BYTES / size)),
    measure: async (lab) => ({ ...(await produce(lab, size)), ...(await work(lab)) }),
  }),
};

async function produce(lab: Lab, size: number): Promise<Record<string, number>> {
  const { jobs } = lab;
  const warmUp = warmUpFor(jobs);
  const empty = await usedMemory(lab.control);
  const session = await lab.contender.open({ url: lab.url, queues: [QUEUE] });
  const batch = Math.min(BATCH, Math.floor(CALL_BYTES / size));
  const send = async (from: number, to: number): Promise<void> => {
    for (let at = from; at < to; at += batch) {
      await session.addBulk(
        QUEUE,
        range(at, Math.min(at + batch, to), (n) => sized(size, n)),
      );
      lab.progress(at, to);
    }
  };
  await send(0, warmUp);
  const startedAt = performance.now();
  await send(warmUp, warmUp + jobs);
  const addBulk = jobs / ((performance.now() - startedAt) / 1_000);
  await session.close();
  // Socket buffers would count as memory of jobs.
  await connections(lab.control);
  return { addBulk, memory: ((await usedMemory(lab.control)) - empty) / (warmUp + jobs) };
}

async function work(lab: Lab): Promise<Record<string, number>> {
  const { jobs } = lab;
  const warmUp = warmUpFor(jobs);
  const tally = new Tally({ warmUp, jobs }, lab.progress);
  const redis = await meterRedis(lab.control);
  const session = await lab.contender.open({
    url: lab.url,
    queues: [QUEUE],
    work: { concurrency: CONCURRENCY, handle: tally.handle },
  });
  await tally.finished;
  await settled(session);
  const { cpuUs } = await redis();
  await session.close();
  return { consume: tally.perSecond, redisCpu: cpuUs / (warmUp + jobs) };
}

/** Exactly this many bytes of JSON, in the form of the other payloads. */
function sized(bytes: number, n: number): Payload {
  const bare = small(n);
  return {
    ...bare,
    template: bare.template.padEnd(bare.template.length + bytes - JSON.stringify(bare).length, 'x'),
  };
}
