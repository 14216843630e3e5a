import { describe, expect, it } from 'vitest';
import type { ProcessorQueues } from '#lib/decorators/processor.decorator.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, keyOf, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect, latch, until } from '../support/wait.js';

const redis = useRedis({ leaves: ['worker'] });

const NAMES = ['high', 'low'];
const groups: [string, ProcessorQueues][] = [
  ['in order', NAMES],
  ['by weight', { high: 3, low: 1 }],
];

/** One pool on two queues whose jobs run until the gate opens. */
async function bootHolding(queues: ProcessorQueues) {
  const gate = latch('the end of all jobs');
  const began: Job[] = [];
  const app = await bootQueue(redis, {
    queues: NAMES.map((name) => ({ name })),
    providers: [
      processorOf(queues, {
        hold: async (job) => {
          began.push(job);
          await gate.promise;
        },
        quick: (job) => void began.push(job),
      }),
    ],
    watch: false,
    root: { lease: { duration: '1s' } },
  });
  const runOf = (queue: string, id?: string) =>
    began.find((job) => job.queue === queue && (id === undefined || job.id === id));
  return { queueOf: app.queueOf, logs: app.logs, gate, began, runOf };
}

async function workerOf(queue: string): Promise<string> {
  const [worker] = await redis.admin.zrange(keyOf(redis, 'workers', queue), '0', '0');
  return worker!;
}

describe.each(groups)('a pool of several queues, %s', (_, queues) => {
  it('that loses the lease of one queue keeps the jobs of the other, and works on both', async () => {
    const { queueOf, gate, runOf, logs, began } = await bootHolding(queues);
    for (const name of NAMES) await queueOf(name).add('hold', 1);
    await until(() => began.length === 2, PATIENT);
    const [high, low] = NAMES.map((name) => runOf(name)!.signal);

    // As when another process has taken the jobs of this worker.
    const worker = await workerOf('high');
    await redis.admin.del(keyOf(redis, `worker:${worker}`, 'high'), keyOf(redis, `active:${worker}`, 'high'));
    await redis.admin.zrem(keyOf(redis, 'workers', 'high'), worker);
    await until(() => high!.aborted, PATIENT);
    expect(low!.aborted).toBe(false);
    await logs.complaint(/queue 'high': the lease ended/);

    for (const name of NAMES) {
      const { id } = await queueOf(name).add('quick', 2);
      await until(() => runOf(name, id), PATIENT);
    }
    expect(await workerOf('low')).not.toBe(worker);
    gate.open();
    await until(async () => (await queueOf('low').counts()).active === 0, PATIENT);
    expect(logs.complaints.filter((text) => text.includes("queue 'low'"))).toEqual([]);
    // The body of the interrupted job is still there, but the job is in no line.
    await queueOf('high').repair();
    await until(async () => {
      const { waiting, active } = await queueOf('high').counts();
      return waiting + active === 0;
    }, PATIENT);
  });

  it('goes on with one queue while the other cannot be claimed from', async () => {
    const { queueOf, gate, runOf, logs } = await bootHolding(queues);
    await redis.admin.set(keyOf(redis, 'wait', 'high'), 'not ours');
    // A timer, the bell or a check makes the worker ask, and it reports the error.
    await redis.admin.zadd(keyOf(redis, 'doorbell', 'high'), 0, 'work');
    await logs.complaint(/queue 'high': cannot claim or settle jobs now/);
    const { id } = await queueOf('low').add('quick', 1);
    await until(() => runOf('low', id), PATIENT);
    await redis.admin.del(keyOf(redis, 'wait', 'high'));
    const late = await queueOf('high').add('quick', 2);
    await until(() => runOf('high', late.id), PATIENT);
    expect(logs.complaints.filter((text) => text.includes("queue 'low'"))).toEqual([]);
    gate.open();
  });
});

describe('the events of several queues', () => {
  const bootWatching = async () => {
    const app = await bootQueue(redis, { queues: [{ name: 'other' }] });
    const other = collect(app.events.of('other'));
    await app.events.ready('other');
    return { ...app, other };
  };

  it('are read while the key of one of them is not a stream, and then those of this queue too', async () => {
    const { queue, queueOf, said, other, logs } = await bootWatching();
    await redis.admin.set(keyOf(redis, 'events', 'other'), 'not ours');
    await logs.complaint(/queue 'other': its events cannot be read/);
    const { id } = await queue.add('job', 1);
    await said.first(({ jobId }) => jobId === id, PATIENT);
    await redis.admin.del(keyOf(redis, 'events', 'other'));
    const later = await queueOf('other').add('job', 1);
    await other.first(({ jobId }) => jobId === later.id, PATIENT);
    expect(logs.complaints.filter((text) => text.includes('events'))).toHaveLength(1);
  });

  it('are read while the number of the last event of one of them cannot be read', async () => {
    const { queue, queueOf, said, other } = await bootWatching();
    await queueOf('other').add('job', 1);
    await other.take(1, () => true, PATIENT);
    await redis.admin.set(keyOf(redis, 'meta', 'other'), 'not ours');
    // After a broken connection the numbers of all queues are compared.
    const [reader] = (await redis.clients()).filter(({ name }) => name?.endsWith(':events'));
    await redis.admin.client('KILL', 'ID', reader!['id']!);
    const { id } = await queue.add('job', 1);
    const event = await said.first(({ jobId }) => jobId === id, PATIENT);
    expect(event).toMatchObject({ type: 'added', queue: 'work' });
  });
});
