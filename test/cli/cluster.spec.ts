import { Cluster } from 'ioredis';
import { expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { useCluster } from '../support/cluster.js';
import { until } from '../support/wait.js';
import { godwit } from './support.js';

const cluster = useCluster();

it('moves between keys of one slot, whichever node is named', async () => {
  const client = new Cluster([...cluster.running.urls]);
  atEnd(() => client.disconnect());
  for (const [i, url] of cluster.running.urls.entries()) {
    const [from, to] = [`{tasks-${i}}:delayed`, `{tasks-${i}}:ready`];
    await client.zadd(from, 1, 'a', 2, 'b');
    const command = godwit(['dispatch', '-u', url, '-d', from, '-r', to, '-v']);
    await until(async () => (await client.llen(to)) === 2, { timeout: 30_000 });
    expect(await client.lrange(to, 0, -1)).toEqual(['a', 'b']);
    expect((await command.end('SIGTERM')).code).toBe(0);
    expect(command.err).toBe('');
  }
});

it('says what to do if the keys are in different slots', async () => {
  const command = godwit(['dispatch', '-u', cluster.running.urls[0]!]);
  expect(await command.ended()).toBe(1);
  expect(command.err).toBe(
    'godwit dispatch: dispatch: Redis refused, nothing was changed: "delayedtaskset" and "readytasklist" lie in ' +
      'different slots of the cluster, and only keys of one slot can be changed at once; give both names the same ' +
      "hash tag, as in '{tasks}:delayed' and '{tasks}:ready'\n",
  );
});
