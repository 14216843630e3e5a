import { expect, it } from 'vitest';
import { createInspector } from '#lib/subpaths/inspector.js';
import { QueueMetrics } from '#lib/subpaths/prometheus/queue-metrics.js';
import { godwit } from '../cli/support.js';
import { useCluster } from '../support/cluster.js';
import { PATIENT } from '../support/queue-app.js';
import { until } from '../support/wait.js';

// The nodes that are left serve their slots, while one master and its replica are down.
const cluster = useCluster({ args: ['--cluster-require-full-coverage', 'no'] });

it('shows the queues of the nodes that answer, and names the others', async () => {
  const names = cluster.queuePerMaster();
  // The list of queues and the records of processes are on another node.
  const registry = Math.floor(cluster.slotOfProcesses() / Math.ceil(16_384 / names.length));
  const down = registry === 0 ? 1 : 0;
  const left = names.filter((_, i) => i !== down).toSorted();
  await using inspector = createInspector({ connection: cluster.connection, prefix: cluster.prefix });
  for (const name of names) await inspector.queue(name).add('one', null);
  await Promise.all([
    cluster.running.nodes[down]!.kill9(),
    cluster.running.nodes[down + names.length]!.kill9(),
  ]);
  await until(async () => (await inspector.readableQueues()).faults.size === 1, PATIENT);

  const { queues, faults } = await inspector.readableQueues();
  expect(queues.map(({ name }) => name)).toEqual(left);
  expect([...faults.keys()]).toEqual([names[down]]);

  const page = await new QueueMetrics({ inspector, global: true }).text();
  expect(page).toContain('godwit_collect_success 0');
  const shown = [...page.matchAll(/^godwit_queue_paused\{queue="(.*)"\}/gm)].map(([, name]) => name);
  expect(shown).toEqual(left);

  const url = cluster.running.urls[registry]!;
  const args = ['-u', url, '--cluster', '--prefix', cluster.prefix];
  const list = godwit(['queues', ...args]);
  expect(await list.ended()).toBe(1);
  for (const name of left) expect(list.out).toMatch(new RegExp(`^${name} +1 `, 'm'));
  expect(list.err).toContain(`godwit: queue ${names[down]} cannot be read: `);

  const doctor = godwit(['doctor', ...args]);
  expect(await doctor.ended()).toBe(4);
  expect(doctor.out).toMatch(new RegExp(`^fail +queue ${names[down]} +cannot be read`, 'm'));
  for (const name of left) expect(doctor.out).toMatch(new RegExp(`^fail +queue ${name} +1 job waits`, 'm'));
});
