import { beforeAll, describe, expect, it, vi } from 'vitest';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { allScripts } from '#lib/engine/script.js';
import type { JobOptions } from '#lib/options/job-options.js';
import type { Queue } from '#lib/producer/queue.js';
import { MAX_BLOCK_MS } from '#lib/worker/doorbell.js';
import { PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';
import { Consumer, measureWork, type Work } from './consumer.js';
import { bootQuiet, bootStill, bulk, inRounds, inWords, payload } from './lab.js';
import { Ledger, type Counters, type Measured } from './ledger.js';
import { Meter } from './meter.js';

// Compares what the library costs with test/counters/counters.json. The counters are of Redis and of Node and contain
// no time. Where the library decides by its clock, the clock stands still or the test moves it. Durations do not
// matter: on a busy machine each round trip waits.
vi.setConfig({ testTimeout: 120_000 });

const server = useServer();
const redis = useRedis({ server });
const ledger = new Ledger();

// No measurement includes sending a script to Redis.
beforeAll(async () => {
  for (const { text } of allScripts()) await redis.admin.script('LOAD', text);
});

const expectCommitted = (what: string, measure: () => Promise<Measured>) =>
  ledger.expectCommitted(what, measure);
const meter = () => new Meter(redis.admin);
const queuesNamed = (count: number) => Array.from({ length: count }, (_, i) => `queue-${i}`);

async function measured(counters: Counters, more: Partial<Measured> = {}): Promise<Measured> {
  return { server: await meter().server(), counters, ...more };
}

/** This many queues with one processor each. */
async function bootMany(count: number, handle: () => void) {
  const names = queuesNamed(count);
  const app = await bootQuiet(redis, {
    queues: names.map((name) => ({ name })),
    providers: names.map((name) => processorOf(name, { noop: handle })),
  });
  return { app, names };
}

describe('the cost of adding', () => {
  const expectAdds = (what: string, jobs: number, add: (queue: Queue) => Promise<void>) =>
    expectCommitted(what, async () => {
      const { queue } = await bootStill(redis);
      // The first of many jobs shows that the connection can run transactions.
      await add(queue);
      return inRounds(redis, { jobs, round: () => meter().spend(() => add(queue)) });
    });

  it('one job at a time', async () => {
    await expectAdds('add, one call at a time', 50, async (queue) => {
      for (let i = 0; i < 50; i++) await queue.add('noop', payload());
    });
  });

  it('with a hundred calls in flight', async () => {
    await expectAdds('add, 100 calls in flight', 2_000, async (queue) => {
      for (let i = 0; i < 20; i++)
        await Promise.all(Array.from({ length: 100 }, () => queue.add('noop', payload())));
    });
  });

  it.each([50, 1_000])('in bulk, %i jobs a call', async (size) => {
    await expectAdds(`add in bulk, ${size} jobs a call`, size * 4, async (queue) => {
      for (let i = 0; i < 4; i++) await queue.addBulk(bulk(size));
    });
  });
});

describe('the cost of running jobs', () => {
  // At the end the bell may wake the worker once more, or ring while the worker asks anyway.
  const expectWork = (what: string, work: Work, spareCalls = 1) =>
    expectCommitted(what, () => measureWork(redis, work, { spareCalls }));
  const JOBS = { jobs: 10_000, concurrency: 100 } as const;

  it.each([1, 10, 100])('a full queue, concurrency %i', async (concurrency) => {
    await expectWork(`consume, concurrency ${concurrency}`, { jobs: 10_000, concurrency });
  });

  it('jobs of which one in ten fails and is retried', async () => {
    const failure = new Error('not this time');
    // It is stored with the failure, and contains paths of this machine.
    failure.stack = 'Error: not this time\n    at Mailer.send (mailer.ts:10:5)';
    const handle: Work['handle'] = ({ data, attempt }) => {
      if (data.n % 10 === 0 && attempt === 1) throw failure;
    };
    const options = { defaults: { attempts: 2, backoff: 0 } };
    await expectWork('consume, 10 % fail once', { ...JOBS, handle, runs: 11_000, options });
  });

  it('jobs whose results are kept', async () => {
    const options = { defaults: { retention: '1h' } } as const;
    await expectWork('consume, results kept', { ...JOBS, handle: () => ({ sent: true }), options });
  });

  it('delayed jobs that are all due', async () => {
    const now = async () => {
      const [seconds, micros] = await redis.admin.time();
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    };
    const filled = async () => {
      const added = await now();
      await until(async () => (await now()) > added + 2, PATIENT);
    };
    // One call more or less, depending on whether the worker slept when the first of them was due.
    const work = { ...JOBS, jobOptions: { delay: 1 }, filled } as const;
    await expectWork('consume delayed jobs, all due', work, 3);
  });

  // Several queues settle and claim at the same time. The machine decides which of them sleeps first and which share a
  // turn of the event loop. That is up to five calls. With this many jobs they weigh little, and only a clearly higher
  // cost is noticed.
  it.each([
    ['ten queues, a pool for each', { jobs: 12_000, concurrency: 10, queues: queuesNamed(10) }],
    [
      'four queues in strict order, one pool',
      { jobs: 8_000, concurrency: 100, queues: queuesNamed(4), isShared: true },
    ],
  ])('%s', async (what, work) => {
    await expectCommitted(`consume ${what}`, () =>
      measureWork(redis, work, { countsNode: false, tolerance: 0.15 }),
    );
  });

  it('one job at a time, in an idle worker', async () => {
    const jobs = 5;
    let handled = latch();
    await expectCommitted('add and consume, one job at a time on an idle queue', async () => {
      const { queue } = await bootStill(redis, { handlers: { noop: () => handled.open() } });
      const cycles = async () => {
        for (let i = 0; i < jobs; i++) {
          handled = latch();
          await queue.add('noop', payload());
          await handled.wait(PATIENT);
          await meter().atRest();
        }
      };
      // The test itself waits meanwhile.
      return inRounds(redis, { jobs, round: () => meter().spend(cycles), countsNode: false });
    });
  });
});

describe('the cost of an idle process', () => {
  const STEP_MS = 1_000;

  it.each([1, 100])('idle for a minute, with %i queues', async (count) => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
    });
    try {
      await expectCommitted(`idle, queues: ${count}`, async () => {
        const { app } = await bootMany(count, () => {});
        // After a first job the queue has all keys of a working queue.
        await app.queueOf('queue-0').add('noop', payload());
        await meter().atRest();
        const minute = async () => {
          let blockEnds = MAX_BLOCK_MS;
          for (let ms = STEP_MS; ms <= 60_000; ms += STEP_MS) {
            await vi.advanceTimersByTimeAsync(STEP_MS);
            if (ms < blockEnds) continue;
            await meter().endBlock();
            blockEnds += MAX_BLOCK_MS;
          }
          await meter().atRest();
        };
        await minute();
        const spent = await meter().spend(minute);
        return measured({ 'Redis commands per minute': spent.commands }, { detail: inWords(spent) });
      });
    } finally {
      vi.useRealTimers();
    }
  });

  it('a heartbeat of a worker with jobs', async () => {
    const started = latch();
    const gate = latch();
    const handle = () => {
      started.open();
      return gate.promise;
    };
    await expectCommitted('beat of a worker with jobs', async () => {
      const app = await bootStill(redis, { handlers: { noop: handle } });
      await app.queue.add('noop', payload());
      await started.wait(PATIENT);
      const active = (await meter().keys()).find((key) => key.includes(':active:'))!;
      const beat = () =>
        app.get<QueueEngine>(QUEUE_ENGINE).beat('work', active.split(':active:')[1]!, 60_000);
      // Sends the script.
      await beat();
      const spent = await meter().spend(beat);
      gate.open();
      return measured({ 'Redis commands': spent.commands }, { detail: inWords(spent) });
    });
  });

  it('a heartbeat of an idle process', async () => {
    await expectCommitted('renewal of an idle process', async () => {
      await bootQuiet(redis, { root: { lease: { duration: 400 } }, handlers: { noop: () => {} } });
      const each: number[] = [];
      for (let i = 0; i < 5; i++) {
        const { commands, scriptCalls } = await meter().spend(() => meter().calls('evalsha', 1));
        each.push(commands / scriptCalls);
      }
      // With so short a lease some rounds block at the bell again, which costs more.
      return measured({ 'Redis commands': Math.min(...each) });
    });
  });

  it.each([1, 100])('connected, with %i queues', async (count) => {
    await expectCommitted(`connections, queues: ${count}`, async () => {
      const before = await meter().connectionsOpened();
      const done = latch();
      let left = count;
      const { app, names } = await bootMany(count, () => {
        left -= 1;
        if (left === 0) done.open();
      });
      await Promise.all(names.map((name) => app.queueOf(name).add('noop', payload())));
      await done.wait(PATIENT);
      await meter().atRest();
      const opened = (await meter().connectionsOpened()) - before;
      return measured({ 'connections opened': opened, 'connections held': (await redis.clients()).length });
    });
  });
});

describe('the memory in Redis', () => {
  // So many that Redis has enlarged the hash of the bodies and has finished moving it.
  const JOBS = 15_000;
  const note = 'x'.repeat(200);

  it.each<[string, JobOptions | undefined, (() => object) | undefined]>([
    ['a waiting job', undefined, undefined],
    ['a waiting job with 200 bytes more', undefined, () => ({ ...payload(), note })],
    ['a delayed job', { delay: '1h' }, undefined],
    ['a job with a priority', { priority: 7 }, undefined],
  ])('of %s', async (what, options, data) => {
    await expectCommitted(`memory of ${what}`, async () => {
      const { queue } = await bootStill(redis, { root: { events: false } });
      const before = await meter().bytesOfKeys();
      for (let left = JOBS; left > 0; left -= 1_000) await queue.addBulk(bulk(1_000, options, data));
      const bytes = (await meter().bytesOfKeys()) - before;
      return measured({ 'bytes per job': bytes / JOBS }, { isOfServer: true });
    });
  });

  it.each([
    ['without events', { events: false }],
    ['with events', {}],
    ['and its result', { events: false, defaults: { retention: '1h' } }],
  ] as const)('of a completed job, %s', async (what, options) => {
    await expectCommitted(`memory of a completed job, ${what}`, async () => {
      const jobs = 2_000;
      const consumer = new Consumer(redis, { jobs, concurrency: 10, options });
      await consumer.boot();
      await consumer.round();
      const [bytes, keys] = [await meter().bytesOfKeys(), (await meter().keys()).length];
      await consumer.round();
      return measured(
        {
          'bytes per job': ((await meter().bytesOfKeys()) - bytes) / jobs,
          'keys per job': ((await meter().keys()).length - keys) / jobs,
        },
        // The stream of events grows by whole nodes, and has few of them yet.
        { isOfServer: true, tolerances: { 'bytes per job': 0.1 } },
      );
    });
  });
});

it('every counter that is committed is one that is measured', () => {
  expect(() => ledger.close()).not.toThrow();
});
