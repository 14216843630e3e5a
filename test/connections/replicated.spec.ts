import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Redis } from 'ioredis';
import { NotReplicatedError } from '#lib/errors.js';
import { startSentinel, type RunningSentinel } from '../../tools/redis/sentinel.mjs';
import { ownerArgs, ownerOf, refusals } from '../support/acl-user.js';
import { atEnd } from '../support/cleanup.js';
import { useCluster } from '../support/cluster.js';
import { bootQueue, PATIENT, processorOf } from '../support/queue-app.js';
import { until, within } from '../support/wait.js';

describe('on Redis Cluster', () => {
  const cluster = useCluster({ args: ownerArgs(true) });
  const clientOf = (url: string) => {
    const client = new Redis(url, { connectionName: 'test' });
    atEnd(() => client.disconnect());
    return client;
  };

  async function bootEverywhere(enqueueTimeout: number) {
    const names = cluster.queuePerMaster();
    const ran: string[] = [];
    const app = await bootQueue(
      { url: '', prefix: cluster.prefix },
      {
        root: {
          connection: { cluster: cluster.running.urls.map((url) => ownerOf(url).url) },
          enqueueTimeout,
        },
        queues: names.map((name) => ({ name, durability: 'replicated' as const })),
        providers: names.map((name) => processorOf(name, { '*': (job) => void ran.push(job.id) })),
        watch: false,
      },
    );
    return { names, ran, queueOf: app.queueOf };
  }

  it('has the replicas of each master confirm, over one connection for each queue, with few rights', async () => {
    const { names, ran, queueOf } = await bootEverywhere(10_000);
    const ids = Array.from({ length: 20 }, (_, i) => `job-${i}`);
    await Promise.all(names.flatMap((name) => ids.map((id) => queueOf(name).add('one', null, { id }))));
    await until(() => ran.length === ids.length * names.length, PATIENT);
    const { user } = ownerOf(cluster.running.urls[0]!);
    const masters = cluster.running.urls.slice(0, names.length).map(clientOf);
    for (const master of masters) {
      const list = String(await master.client('LIST')).split('\n');
      expect(list.filter((line) => line.includes(':replicated '))).toHaveLength(1);
      expect(await refusals(master, user)).toEqual([]);
    }
  });

  it('rejects only if the replica of the master is silent', async () => {
    const { names, ran, queueOf } = await bootEverywhere(1_500);
    await Promise.all(names.map((name) => queueOf(name).add('warm', null)));
    const { pid } = cluster.running.nodes[names.length]!;
    process.kill(pid!, 'SIGSTOP');
    atEnd(() => process.kill(pid!, 'SIGCONT'));
    const [refused, ...stored] = await Promise.allSettled(
      names.map((name) => queueOf(name).add('one', null, { id: name })),
    );
    process.kill(pid!, 'SIGCONT');
    expect(refused).toMatchObject({ status: 'rejected', reason: { asked: 1, answered: 0 } });
    expect((refused as PromiseRejectedResult).reason).toBeInstanceOf(NotReplicatedError);
    expect(stored.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    await until(() => ran.length === 2 * names.length, PATIENT);
  });
});

describe('under sentinels', () => {
  let sentinel: RunningSentinel;
  beforeAll(async () => {
    sentinel = await startSentinel();
    await sentinel.healthy();
  });
  afterAll(() => sentinel.stop());

  it('loses nothing that was confirmed when the primary is replaced', async () => {
    const { queue } = await bootQueue(
      { url: '', prefix: 'replaced' },
      {
        root: { connection: sentinel.connection, enqueueTimeout: '20s' },
        queue: { durability: 'replicated' },
        watch: false,
      },
    );
    const stored: string[] = [];
    let adding = true;
    const addAll = async (lane: number) => {
      for (let i = 0; adding; i++) {
        const { id } = await queue.add('one', null, { id: `${lane}-${i}` });
        stored.push(id);
      }
    };
    const lanes = [0, 1, 2, 3].map(addAll);
    await until(() => stored.length > 200, PATIENT);
    const { primary, replica } = await sentinel.roles();
    await sentinel.failover();
    // The old primary comes back as a replica, which has to confirm from now on.
    const before = stored.length;
    await until(() => stored.length > before + 200, { timeout: 20_000 });
    adding = false;
    await within(Promise.all(lanes), { timeout: 25_000, what: 'all adds are decided' });
    const client = new Redis(replica.url);
    atEnd(() => client.disconnect());
    expect((await sentinel.roles()).primary.port).not.toBe(primary.port);
    const there = new Set(await client.hkeys('{replaced:work}:jobs'));
    expect(stored.filter((id) => !there.has(id))).toEqual([]);
  }, 60_000);
});
