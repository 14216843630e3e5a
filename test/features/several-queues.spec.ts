import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ProcessorQueues } from '#lib/decorators/processor.decorator.js';
import { defineJob } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import {
  bootQueue,
  PATIENT,
  processorOf,
  type Handlers,
  type QueueApp,
  itOnRedis,
} from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { endOfTurn, latch, until } from '../support/wait.js';

const redis = useRedis();
const NAMES = ['critical', 'default', 'low'] as const;
type Name = (typeof NAMES)[number];

const jobs = (count: number) =>
  Array.from({ length: count }, (_, data) => ({ name: 'job', data: data as unknown }));

/** An application with one pool on three queues that adds to them while its pool does not run yet. */
async function bootGroup(
  queues: ProcessorQueues,
  handlers: Handlers,
  concurrency: number,
  autoStart = false,
): Promise<QueueApp> {
  return bootQueue(redis, {
    queues: NAMES.map((name) => ({ name })),
    providers: [processorOf(queues, handlers, { concurrency })],
    root: { autoStart },
    watch: false,
  });
}

/** Records the queue of each job in the order in which they began. */
function recorder(run: (job: Job) => unknown = () => undefined) {
  const began: string[] = [];
  const handler = (job: Job) => {
    began.push(job.queue);
    return run(job);
  };
  return { began, handlers: { '*': handler } satisfies Handlers };
}

const counted = (began: readonly string[]) =>
  Object.fromEntries(NAMES.map((name) => [name, began.filter((one) => one === name).length]));

describe('a list of queues', () => {
  it.each([1, 10])(
    'is taken strictly in its order, with concurrency %i and real backlogs',
    async (concurrency) => {
      const { began, handlers } = recorder(endOfTurn);
      const { queueOf, runtime } = await bootGroup(NAMES, handlers, concurrency);
      for (const name of NAMES.toReversed()) await queueOf(name).addBulk(jobs(200));
      await runtime.start();
      await until(() => began.length === 600, PATIENT);
      expect(began).toEqual(NAMES.flatMap((name) => Array.from({ length: 200 }).fill(name)));
    },
  );

  it.each([1, 10])(
    'lets a job of the first queue be the next to start, whatever waits in the last, with concurrency %i',
    async (concurrency) => {
      const gates = Array.from({ length: 60 }, () => latch());
      let next = 0;
      const { began, handlers } = recorder((job) =>
        job.queue === 'low' ? gates[next++]!.promise : undefined,
      );
      const { queueOf } = await bootGroup(NAMES, handlers, concurrency, true);
      await queueOf('low').addBulk(jobs(gates.length - 5));
      await until(() => began.length === concurrency, PATIENT);
      for (let round = 0; round < 5; round++) {
        await queueOf('critical').add('job', round);
        await queueOf('default').add('job', round);
        // The jobs of the first two end at once. Beside such queues a queue that was empty counts as empty for 5 ms.
        const added = performance.now();
        await until(() => performance.now() - added > 10);
        const before = began.length;
        gates[round]!.open();
        await until(() => began.length >= before + 3, PATIENT);
        expect(began.slice(before, before + 3)).toEqual(['critical', 'default', 'low']);
      }
      for (const gate of gates) gate.open();
      await until(async () => (await queueOf('low').counts()).active === 0, PATIENT);
    },
  );

  it('continues with the next queue if the first one is paused, for all or in this process, and returns to it', async () => {
    const { began, handlers } = recorder(endOfTurn);
    const { queueOf, runtime } = await bootGroup(NAMES, handlers, 1, true);
    await queueOf('critical').pause();
    runtime.pause('default');
    for (const name of NAMES) await queueOf(name).addBulk(jobs(20));
    await until(() => began.length === 20, PATIENT);
    expect(counted(began)).toEqual({ critical: 0, default: 0, low: 20 });
    runtime.resume('default');
    await until(() => began.length === 40, PATIENT);
    expect(counted(began)).toEqual({ critical: 0, default: 20, low: 20 });
    await queueOf('critical').resume();
    await until(() => began.length === 60, PATIENT);
    expect(counted(began)).toEqual({ critical: 20, default: 20, low: 20 });
  });
});

describe('weights', () => {
  // One at a time, each job takes a round trip, so there are fewer of them. With ten at once, a queue loses one
  // start for each ms that its answer is late. The bound allows 45 ms.
  it.each([
    [1, 100, 3],
    [10, 900, 10],
  ])(
    'share the slots of slow jobs, and none starves, with concurrency %i',
    async (concurrency, starts, ms) => {
      const { began, handlers } = recorder(() => pause(ms));
      const weights = { critical: 6, default: 3, low: 1 };
      const { queueOf, runtime } = await bootGroup(weights, handlers, concurrency);
      // No queue is empty before the last start that counts.
      const backlog = (name: Name) => (starts * weights[name]) / 10 + 30;
      await Promise.all(NAMES.map((name) => queueOf(name).addBulk(jobs(backlog(name)))));
      await runtime.start();
      await until(() => began.length >= starts, PATIENT);
      const first = began.slice(0, starts);
      for (const name of NAMES) {
        const differs = Math.abs(counted(first)[name]! - (starts * weights[name]) / 10);
        expect(differs, JSON.stringify(counted(first))).toBeLessThan(starts / 20);
      }
      const low = first.flatMap((name, i) => (name === 'low' ? [i] : []));
      const waits = low.map((at, i) => at - (low[i - 1] ?? 0));
      // Ten at once are claimed together, and a busy machine answers for one queue later than for another.
      expect(Math.max(...waits)).toBeLessThan(100);
      await until(() => began.length === starts + 90, PATIENT);
    },
  );

  it('leave the slots of an empty queue to the others at once', async () => {
    const gate = latch('the end of all jobs');
    const { began, handlers } = recorder(() => gate.promise);
    const { queueOf } = await bootGroup({ critical: 1000, default: 1, low: 1 }, handlers, 10, true);
    await queueOf('low').addBulk(jobs(8));
    await until(() => began.length === 8, PATIENT);
    await queueOf('default').addBulk(jobs(8));
    await until(() => began.length === 10, PATIENT);
    gate.open();
    await until(() => began.length === 16, PATIENT);
    expect(counted(began)).toEqual({ critical: 0, default: 8, low: 8 });
  });
});

describe('a pool of several queues', () => {
  const groups: [string, ProcessorQueues][] = [
    ['in order', NAMES],
    ['by weight', { critical: 6, default: 3, low: 1 }],
  ];

  it.each(groups)('%s never runs more than its slots, and all of them', async (_, queues) => {
    let now = 0;
    let most = 0;
    const { began, handlers } = recorder(async () => {
      most = Math.max(most, ++now);
      for (let i = 0; i < 3; i++) await endOfTurn();
      now -= 1;
    });
    const { queueOf, runtime } = await bootGroup(queues, handlers, 4);
    await Promise.all(NAMES.map((name) => queueOf(name).addBulk(jobs(300))));
    await runtime.start();
    await until(() => began.length === 900 && now === 0, PATIENT);
    expect(most).toBe(4);
    expect(counted(began)).toEqual({ critical: 300, default: 300, low: 300 });
  });

  it.each(groups)('%s wakes for each of its queues while it sleeps', async (_, queues) => {
    const { began, handlers } = recorder();
    const { queueOf } = await bootGroup(queues, handlers, 1, true);
    for (let round = 0; round < 60; round++) {
      const name = NAMES[(round * 7) % 3] as Name;
      await queueOf(name).add('job', round);
      // Without its bell it would look after five seconds only.
      await until(() => began.length === round + 1, { timeout: 4_000 });
      expect(began.at(-1)).toBe(name);
    }
  });

  it.each(groups)(
    '%s loses no wake-up: a second process runs the jobs for which the first has no slot',
    async (_, queues) => {
      let both = latch('both have a job');
      let running = 0;
      const handlers: Handlers = {
        '*': async () => {
          if (++running === 2) both.open();
          await both.promise;
        },
      };
      const one = await bootGroup(queues, handlers, 1, true);
      await bootGroup(queues, handlers, 1, true);
      const times: number[] = [];
      for (let round = 0; round < 40; round++) {
        running = 0;
        both = latch('both have a job');
        const since = performance.now();
        await Promise.all([0, 1].map((i) => one.queueOf(NAMES[(round + i) % 3]!).add('job', round)));
        await both.wait(PATIENT);
        times.push(performance.now() - since);
        await until(async () => {
          const all = await Promise.all(NAMES.map((name) => one.queueOf(name).counts()));
          return all.every(({ active }) => active === 0);
        }, PATIENT);
      }
      expect(times.filter((ms) => ms > 750).length, times.map(Math.round).join(' ')).toBeLessThan(4);
    },
  );

  it('handles a name for each queue, and a definition for its own queue', async () => {
    const ran: string[] = [];
    const report = defineJob<number>('low', 'report');
    const { queueOf, close, logs } = await bootQueue(redis, {
      queues: NAMES.map((name) => ({ name })),
      providers: [
        processorOf(['critical', report], { report: (job) => void ran.push(`first ${job.queue}`) }),
        processorOf(['critical', 'low'], { '*': (job) => void ran.push(`rest ${job.queue} ${job.name}`) }),
      ],
      watch: false,
    });
    await queueOf('critical').add('report', 1);
    await queueOf('low').add('report', 1);
    await queueOf('low').add('other', 1);
    await until(() => ran.length === 3, PATIENT);
    expect(ran.toSorted()).toEqual(['first critical', 'first low', 'rest low other']);
    await close();
    const said = logs.lines.map(({ text }) => text);
    expect(said).toContainEqual(
      expect.stringContaining('workers started: critical before low (concurrency 10)'),
    );
    expect(said).toContain(
      "queues 'critical' and 'low' stopped: 0 running jobs finished meanwhile, 0 given back",
    );
  });

  itOnRedis('needs no further connections', async () => {
    const { began, handlers } = recorder();
    const group = await bootGroup(NAMES, handlers, 10, true);
    await Promise.all(NAMES.map((name) => group.queueOf(name).add('job', name)));
    await until(() => began.length === NAMES.length, PATIENT);
    // The heartbeat opens its connection last, from its own thread. That of the application before may still be
    // closing.
    const names = async () =>
      (await redis.clients()).map(({ name }) => name?.split(':').at(-1) ?? '').toSorted();
    await expect.poll(names, PATIENT).toEqual(['blocking', 'command', 'heartbeat']);
  });
});
