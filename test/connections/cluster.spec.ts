import fc from 'fast-check';
import { Command } from 'ioredis';
import { expect, it } from 'vitest';
import { processKeys, QueueKeys } from '#lib/engine/keys.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import type { Job } from '#lib/job/job.js';
import { ask } from '../../tools/redis/ask.mjs';
import { useCluster } from '../support/cluster.js';
import { bootQueue, processorOf, PATIENT } from '../support/queue-app.js';
import { collect, latch, until } from '../support/wait.js';

const cluster = useCluster();
/** Without its doorbell a worker looks every five seconds. Then so many jobs of one queue would take longer than a test may. */
const ROUNDS = 15;

/** An application with a queue on every master, and a processor for each. */
async function bootEverywhere(run: (job: Job<any>) => unknown = () => undefined) {
  const names = cluster.queuePerMaster();
  const runs = new Map<string, number>();
  const handler = (job: Job) => {
    runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
    return run(job);
  };
  const { close, events, get, logs, producer, queueOf } = await bootQueue(
    { url: '', prefix: cluster.prefix },
    {
      root: { connection: cluster.connection },
      queues: names.map((name) => ({ name })),
      providers: names.map((name) => processorOf(name, { '*': handler })),
      watch: false,
    },
  );
  const workers = () => get(QueueInspector).workers();
  return { close, events, logs, producer, queueOf, names, runs, workers };
}

it('boots, adds, runs, waits and drains with a queue on every master', async () => {
  const { names, runs, producer, queueOf, close, logs } = await bootEverywhere((job) => `done ${job.name}`);
  const results = await Promise.all(
    names.flatMap((name) => [
      queueOf(name).addAndWait('one', null, { waitTimeout: '15s' }),
      queueOf(name).addAndWait('two', null, { delay: 20, waitTimeout: '15s' }),
    ]),
  );
  expect(results).toEqual(names.flatMap(() => ['done one', 'done two']));
  await Promise.all(
    names.map((name) =>
      queueOf(name).addBulk(Array.from({ length: 300 }, () => ({ name: 'bulk', data: 1 }))),
    ),
  );
  await until(() => runs.size === names.length * 302, PATIENT);
  await producer.add(names[0]!, 'late', null);
  await close();
  expect([...runs.values()].every((times) => times === 1)).toBe(true);
  expect(logs.complaints.filter((text) => !text.includes('append-only'))).toEqual([]);
});

it.each(['in order', 'by weight'])('runs one pool on queues of every master, %s', async (how) => {
  const names = cluster.queuePerMaster();
  const began: string[] = [];
  const { queueOf, runtime } = await bootQueue(
    { url: '', prefix: cluster.prefix },
    {
      root: { connection: cluster.connection, autoStart: false },
      queues: names.map((name) => ({ name })),
      providers: [
        processorOf(
          how === 'in order' ? names : Object.fromEntries(names.map((name, i) => [name, 3 - i])),
          { '*': (job) => void began.push(job.queue) },
          { concurrency: 1 },
        ),
      ],
      watch: false,
    },
  );
  for (const name of names.toReversed()) {
    await queueOf(name).addBulk(Array.from({ length: 20 }, () => ({ name: 'one', data: 1 })));
  }
  await runtime.start();
  await until(() => began.length === 60, PATIENT);
  const inOrder = names.flatMap((name) => Array.from({ length: 20 }, () => name));
  expect(how === 'in order' ? began : inOrder).toEqual(inOrder);
  expect(new Set(began)).toEqual(new Set(names));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, name] of names.entries()) {
      await queueOf(name).add('one', 2, i === 1 ? { delay: 20 } : {});
      await until(() => began.length === 61 + round * names.length + i, PATIENT);
    }
  }
});

it('wakes idle workers of every queue at once', async () => {
  const { names, runs, queueOf } = await bootEverywhere();
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) {
      const { id } = await queueOf(name).add('one', null);
      await until(() => runs.has(id), PATIENT);
    }
  }
  expect([...runs.values()].every((times) => times === 1)).toBe(true);
});

it('emits the events of every queue in their order', async () => {
  const { names, queueOf, events } = await bootEverywhere();
  const all = names.map((name) => collect(events.of(name)));
  await Promise.all(names.map((name) => events.ready(name)));
  for (let i = 0; i < 50; i++) {
    await Promise.all(names.map((name) => queueOf(name).add('one', null, { id: `${name}-${i}` })));
  }
  for (const [at, name] of names.entries()) {
    await all[at]!.take(50, ({ type }) => type === 'completed', PATIENT);
    const added = all[at]!.values.filter(({ type }) => type === 'added').map(({ jobId }) => jobId);
    expect(added).toEqual(Array.from({ length: 50 }, (_, i) => `${name}-${i}`));
  }
});

it('pauses, counts, reads, removes, resumes and obliterates', async () => {
  const gate = latch('the gate');
  const { names, queueOf } = await bootEverywhere((job) => (job.name === 'held' ? gate.promise : undefined));
  for (const name of names) {
    const queue = queueOf(name);
    await queue.pause();
    await queue.add('held', null, { id: 'a' });
    await queue.add('later', null, { id: 'b', delay: '1h' });
    expect(await queue.counts()).toMatchObject({ waiting: 1, delayed: 1 });
    expect(await queue.get('b')).toMatchObject({ id: 'b', state: 'delayed' });
    await queue.remove('b');
    await queue.resume();
    await until(async () => (await queue.counts()).active === 1, PATIENT);
  }
  gate.open();
  for (const name of names) {
    await until(async () => (await queueOf(name).counts()).active === 0, PATIENT);
    await queueOf(name).obliterate();
  }
});

it('lists every worker process, whichever masters own its queues', async () => {
  const end = latch('the end of the jobs');
  const { names, queueOf, workers, close } = await bootEverywhere(() => end.promise);
  await Promise.all(names.map((name) => queueOf(name).add('one', null)));
  const isShown = async () => {
    const [worker, ...others] = await workers();
    const running = worker?.pools.flatMap(({ jobs }) => jobs.map(({ queue }) => queue));
    return others.length === 0 && running?.toSorted().join() === names.toSorted().join();
  };
  await until(isShown, PATIENT);
  end.open();
  const watcher = await bootQueue(
    { url: '', prefix: cluster.prefix },
    { root: { connection: cluster.connection }, watch: false },
  );
  await close();
  expect(await watcher.get(QueueInspector).workers()).toEqual([]);
});

it('writes the limits of the code again if one master has lost its data', async () => {
  const names = cluster.queuePerMaster();
  const limits = { concurrency: 2 };
  let [running, most] = [0, 0];
  const run = async () => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running -= 1;
  };
  const { queueOf } = await bootQueue(
    { url: '', prefix: cluster.prefix },
    {
      root: { connection: cluster.connection, limits: { api: { concurrency: 1 } } },
      queues: names.map((name) => ({ name, uses: ['api'], limits })),
      providers: names.map((name) => processorOf(name, { '*': run })),
      watch: false,
    },
  );
  const handles = names.map((name) => queueOf(name));
  const addAndDrain = async () => {
    await Promise.all(
      handles.map((queue) => queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'one', data: 1 })))),
    );
    for (const queue of handles)
      await until(async () => {
        const { waiting, active } = await queue.counts();
        return waiting + active === 0;
      }, PATIENT);
  };
  for (const { port } of cluster.running.nodes.slice(0, names.length)) {
    // Redis 8 runs a plain FLUSHALL in the background, and does not answer it if the socket is closed on one side.
    await ask(port, 'FLUSHALL ASYNC');
    await addAndDrain();
    for (const queue of handles)
      await until(async () => {
        const concurrencies = (await queue.limits.list()).map(({ concurrency }) => concurrency);
        return concurrencies.join() === '2,1';
      }, PATIENT);
  }
  expect(most).toBe(1);
});

it('puts every key of a queue into one slot, whatever the name of the queue', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9._-]{1,128}$/);
  fc.assert(
    fc.property(name, fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/), (queue, prefix) => {
      const keys = new QueueKeys(prefix, queue);
      const all = [
        ...Object.values(keys.fixed),
        keys.active('w'),
        keys.worker('w'),
        keys.lane('l'),
        keys.stats('d'),
      ];
      for (const group of [all, Object.values(processKeys(prefix))])
        expect(new Set(group.map((key) => new Command('get', [key]).getSlot())).size).toBe(1);
    }),
    { numRuns: 1_000 },
  );
});

it('explains the mistake if the connection names one node and no cluster', async () => {
  const [, elsewhere] = cluster.queuePerMaster();
  const { queueOf } = await bootQueue(
    { url: cluster.running.urls[0]!, prefix: cluster.prefix },
    { root: { enqueueTimeout: '2s' }, queues: [{ name: elsewhere! }], watch: false },
  );
  await expect(queueOf(elsewhere!).add('one', null)).rejects.toMatchObject({
    reply: 'MOVED',
    applied: 'no',
    message: expect.stringContaining('set the connection to { cluster: [...] }'),
  });
});

it('keeps queues consistent, and replicas confirm their adds, on every master', async () => {
  const { names, queueOf, runs } = await bootEverywhere();
  for (const name of names) {
    const queue = queueOf(name);
    await queue.add('one', null, { durability: { replicas: 1, timeout: '5s' } });
    expect(await queue.audit()).toMatchObject({ violations: [] });
  }
  await until(() => runs.size === names.length, PATIENT);
});
