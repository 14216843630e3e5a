import { expect, it } from 'vitest';
import { createInspector } from '#lib/subpaths/inspector.js';
import { godwit } from '../cli/support.js';
import { useCluster } from '../support/cluster.js';
import { PATIENT } from '../support/queue-app.js';
import { until } from '../support/wait.js';

const cluster = useCluster({
  args: ['--cluster-require-full-coverage', 'no'],
  limitsAreWithProcesses: true,
});

it('serves a queue by its name while the node with the list of queues is down', async () => {
  const names = cluster.queuePerMaster();
  const down = Math.floor(cluster.slotOfProcesses() / Math.ceil(16_384 / names.length));
  const left = (down + 1) % names.length;
  const [name, url] = [names[left]!, cluster.running.urls[left]!];
  await using inspector = createInspector({ connection: cluster.connection, prefix: cluster.prefix });
  const queue = inspector.queue(name);
  for (const id of ['a', 'b']) await queue.add('one', null, { id });
  await queue.limits.set({ concurrency: 3 });
  await Promise.all([
    cluster.running.nodes[down]!.kill9(),
    cluster.running.nodes[down + names.length]!.kill9(),
  ]);
  await until(async () => (await queue.counts()).waiting === 2, PATIENT);

  const run = async (command: string, ...words: string[]) => {
    const ran = godwit([command, '-u', url, '--cluster', '--prefix', cluster.prefix, ...words]);
    return { code: await ran.ended(), out: ran.out, err: ran.err };
  };
  expect(await run('jobs', name, 'waiting')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^a +one/m),
  });
  expect(await run('job', name, 'a')).toMatchObject({ code: 0, out: expect.stringContaining('waiting') });
  const paused = await run('pause', name, '--json');
  expect(paused).toMatchObject({
    code: 0,
    err: expect.stringMatching(
      /^\{"code":"GODWIT_WARNING","message":"an action could not be rec.*ECONNREFUSED [\d.:]+\)"\}\n$/,
    ),
  });
  // The line about the action is not among the output.
  expect(JSON.parse(paused.out)).toBeDefined();
  expect(await queue.isPaused()).toBe(true);
  // It is not known whether there is such a queue.
  expect(await run('jobs', `${name}x`, 'waiting')).toMatchObject({ code: 1 });
  expect(await run('queues')).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringMatching(
      /^godwit: the list of queues cannot be read: [^\n]+ECONNREFUSED [\d.:]+\); commands that name a queue with jobs work without it\n$/,
    ),
  });
  const own = /: no connection to Redis in time \(connect ECONNREFUSED [\d.]+:\d+\)$/m;
  const workers = 'godwit: the records of worker processes cannot be read';
  const one = await run('queues', name, names[down]!);
  expect(one.out).toMatch(new RegExp(`^${name} +2 +0 +0 +0 .* +\\? +paused$`, 'm'));
  expect(one.err).toContain(`godwit: queue ${names[down]!} cannot be read: `);
  expect(one.err).toContain(workers);
  expect(one.err).toMatch(own);
  expect(one.code).toBe(1);
  const json = await run('queues', name, '--json');
  expect(JSON.parse(json.out)).toMatchObject([{ name, workers: null, workersPaused: null }]);
  expect(await run('health', name)).toMatchObject({
    code: 4,
    out: expect.stringContaining('worker processes'),
  });

  // It fails before it deletes anything.
  expect(await run('obliterate', name, '-y')).toMatchObject({
    code: 1,
    err: expect.stringContaining('nothing was changed'),
  });
  expect((await queue.counts()).waiting).toBe(2);
  // They need neither the list nor the workers.
  const others = [
    ['stats', name],
    ['schedules', name],
    ['cancel', name, 'a', '-y'],
  ] as const;
  const [limits, ...ran] = await Promise.all([
    run('limits', name),
    ...others.map(([command, ...words]) => run(command, ...words)),
  ]);
  expect(ran.map(({ code, err }) => (code === 0 ? '' : err)).join('')).toBe('');
  expect(limits).toEqual({
    code: 1,
    out: expect.stringMatching(/^the queue +.*\b0\/3\b/m),
    err: expect.stringMatching(/^godwit: the shared limits cannot be read: no connection [^\n]+\n$/),
  });
}, 180_000);
