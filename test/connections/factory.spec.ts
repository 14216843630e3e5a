import { Cluster, Redis } from 'ioredis';
import { expect, it } from 'vitest';
import type { ConnectionOption } from '#lib/options/connection.js';
import { startRedis } from '../../tools/redis.mjs';
import { bootWorking } from '../faults/support/app.js';
import { useCluster } from '../support/cluster.js';
import { until } from '../support/wait.js';

const cluster = useCluster();

type Factory = Extract<ConnectionOption, (...args: never[]) => unknown>;

async function expectToWork(connection: Factory): Promise<void> {
  const queue = cluster.queuePerMaster()[1]!;
  const app = await bootWorking({ connection, prefix: cluster.prefix }, undefined, { queue });
  await app.queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'one', data: null })));
  await until(() => app.runs.size === 50, { timeout: 15_000 });
  expect(app.links.filter(({ state }) => state === 'down')).toEqual([]);
  await app.close();
}

it.each([false, true])(
  'takes a factory that makes clients of a cluster, lazyConnect %s',
  async (lazyConnect) => {
    const asked: string[] = [];
    await expectToWork((role) => {
      asked.push(role);
      return new Cluster([...cluster.running.urls], { lazyConnect });
    });
    expect(asked).toEqual(['command']);
  },
);

it('takes options, ports and a natMap with functions from the client of a factory', async () => {
  const nodes = cluster.running.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  const named: string[] = [];
  await expectToWork(
    () =>
      new Cluster(nodes, {
        lazyConnect: true,
        redisOptions: { connectTimeout: 1_234 },
        natMap: (name) => {
          named.push(name);
          return null;
        },
      }),
  );
  // Replicas are named once they have something to copy.
  expect(named).toEqual(expect.arrayContaining(nodes.slice(0, 3).map(({ host, port }) => `${host}:${port}`)));
});

it('takes a factory that makes clients of one server', async () => {
  const made: string[] = [];
  const server = await startRedis({ private: true });
  const app = await bootWorking({
    connection: (role) => {
      made.push(role);
      return new Redis(server.url);
    },
  });
  await app.queue.add('one', null);
  await until(() => app.runs.size === 1 && made.length === 3);
  await app.close();
  await server.stop();
  // One is made to see that it is another.
  expect(made.toSorted()).toEqual(['blocking', 'blocking', 'command']);
});

it('refuses a factory that returns the same client twice, at the start', async () => {
  const server = await startRedis({ private: true });
  const client = new Redis(server.url);
  await expect(bootWorking({ connection: () => client })).rejects.toThrow(
    "forRoot().connection must be a function that makes a new client at every call: for 'blocking' it returned one",
  );
  client.disconnect();
  await server.stop();
});

it.each<[string, () => Redis | Cluster, string]>([
  ['keyPrefix', () => new Redis({ lazyConnect: true, keyPrefix: 'a' }), 'forRoot().connection.keyPrefix'],
  [
    'keyPrefix of a cluster',
    () => new Cluster([1], { lazyConnect: true, keyPrefix: 'a' }),
    'forRoot().connection.keyPrefix',
  ],
  [
    'keyPrefix of the nodes of a cluster',
    () => new Cluster([1], { lazyConnect: true, redisOptions: { keyPrefix: 'a' } as object }),
    'keyPrefix',
  ],
  ['no client', () => 'redis://localhost' as never, 'a function that returns an ioredis client'],
])('refuses a factory with %s', async (_, make, text) => {
  await expect(bootWorking({ connection: make })).rejects.toThrow(text);
});
