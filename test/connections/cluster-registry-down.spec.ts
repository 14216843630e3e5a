import { expect, it } from 'vitest';
import { createInspector } from '#lib/subpaths/inspector.js';
import { godwit } from '../cli/support.js';
import { useCluster } from '../support/cluster.js';
import { PATIENT } from '../support/queue-app.js';
import { until } from '../support/wait.js';

const cluster = useCluster({ args: ['--cluster-require-full-coverage', 'no'] });

it('serves a queue by its name while the node with the list of queues is down', async () => {
  const names = cluster.queuePerMaster();
  const down = Math.floor(cluster.slotOfProcesses() / Math.ceil(16_384 / names.length));
  const left = (down + 1) % names.length;
  const [name, url] = [names[left]!, cluster.running.urls[left]!];
  await using inspector = createInspector({ connection: cluster.connection, prefix: cluster.prefix });
  const queue = inspector.queue(name);
  for (const id of ['a', 'b']) await queue.add('one', null, { id });
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
    err: expect.stringMatching(/^godwit: an action could not be rec/),
  });
  // The line about the action is not among the output.
  expect(JSON.parse(paused.out)).toBeDefined();
  expect(await queue.isPaused()).toBe(true);
  // It is not known whether there is such a queue.
  expect(await run('jobs', `${name}x`, 'waiting')).toMatchObject({ code: 1 });
  const all = await run('queues');
  expect(all).toMatchObject({ code: 1, err: expect.stringContaining('godwit: inspector.') });
}, 60_000);
