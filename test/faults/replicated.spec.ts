import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { enqueue } from '#lib/engine/scripts/adds.js';
import { NotReplicatedError } from '#lib/errors.js';
import type { DurabilityOption } from '#lib/options/job-options.js';
import { startCut } from '../support/cut.js';
import { bootQueue, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until, within } from '../support/wait.js';
import { useReplica } from './support/replica.js';

const server = useServer();
const replica = useReplica(server);
const redis = useRedis({ server });

const REPLICATED: DurabilityOption = 'replicated';
/** Adds that cannot be confirmed fail after this time. Redis answers `WAIT` one second earlier. */
const SOON = 2_000;
/** A busy machine may be late. */
const LATE_MS = 3_000;
const soon: QueueAppOptions = {
  root: { enqueueTimeout: SOON },
  queue: { durability: REPLICATED },
  watch: false,
};

/** The script that adds, by hash or in full. */
const isEnqueue = (words: readonly string[]) =>
  /^eval/i.test(words[0]!) && [enqueue.sha, enqueue.text].includes(words[1]!);

/** How an add ended. It may take little longer than its time limit. */
async function outcome(added: Promise<unknown>, ms = SOON) {
  const ended = added.then(
    () => expect.fail('it resolved'),
    (error: unknown) => error,
  );
  return (await within(ended, { timeout: ms + LATE_MS, what: 'the add is decided' })) as NotReplicatedError;
}

const roles = async () => (await redis.clients()).map(({ name }) => name!.split(':').at(-1)!).toSorted();

async function calls(command: string): Promise<number> {
  const stats = await redis.admin.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

beforeEach(() => replica.caughtUp(redis.admin));
afterEach(() => replica.goOn());

describe('an add that must be replicated', () => {
  it('resolves once a replica has the job, and not before', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    replica.stop();
    let resolved = false;
    const added = queue.add('one', null, { id: 'a', durability: REPLICATED }).then(() => (resolved = true));
    await until(() => redis.admin.hexists(`{${redis.prefix}:work}:jobs`, 'a'));
    // Redis answers the WAIT of another connection while this one waits.
    await queue.add('one', null, { id: 'b' });
    expect(resolved).toBe(false);
    replica.goOn();
    await within(added, PATIENT);
    expect(await replica.client.hexists(`{${redis.prefix}:work}:jobs`, 'a')).toBe(1);
  });

  it('reports how many replicas confirmed if one hangs, and the job runs anyway', async () => {
    const ran: string[] = [];
    const { queue } = await bootQueue(redis, { ...soon, handlers: { '*': (job) => void ran.push(job.id) } });
    replica.stop();
    const error = await outcome(queue.add('one', null, { id: 'a' }));
    expect(error).toBeInstanceOf(NotReplicatedError);
    expect(error).toMatchObject({
      code: 'GODWIT_NOT_REPLICATED',
      applied: 'unknown',
      queue: 'work',
      asked: 1,
      answered: 0,
    });
    expect(error.message).toMatch(
      /^add to queue 'work': stored, but 0 of 1 replicas confirmed it within \d+ ms/,
    );
    await until(async () => ran.length > 0 && (await queue.get('a')) === null);
    replica.goOn();
    await replica.caughtUp(redis.admin);
    // The same id is added again. The first job has run and is gone, so this is a new one, and it is confirmed now.
    expect(await queue.add('one', null, { id: 'a' })).toMatchObject({ id: 'a', duplicate: false });
    await until(() => ran.length > 1);
    expect(ran).toEqual(['a', 'a']);
  });

  it('does that too if there are fewer replicas than it asks for', async () => {
    const { queue } = await bootQueue(redis, { ...soon, queue: { durability: { replicas: 2 } } });
    expect(await outcome(queue.add('one', null))).toMatchObject({
      asked: 2,
      answered: 1,
      applied: 'unknown',
    });
    const bulk = queue.addBulk([{ name: 'many', data: null }]);
    expect(await outcome(bulk)).toMatchObject({ code: 'GODWIT_NOT_REPLICATED', asked: 2, answered: 1 });
    // An add with a lower durability does not wait for it.
    await queue.add('one', null, { durability: { replicas: 1 } });
    await queue.add('one', null, { durability: 'local' });
  });

  it('is repeated within its timeout, until the replica answers', async () => {
    const { queue } = await bootQueue(redis, {
      watch: false,
      queue: { durability: { timeout: 50 } },
      root: { enqueueTimeout: '10s' },
    });
    await queue.add('warm', null);
    replica.stop();
    const before = await calls('wait');
    const added = queue.add('one', null, { id: 'a' });
    await until(async () => (await calls('wait')) >= before + 4);
    replica.goOn();
    expect(await within(added, PATIENT)).toMatchObject({ id: 'a', duplicate: false });
    expect(await queue.counts()).toMatchObject({ waiting: 2 });
  });

  it('does not count as replicated by the WAIT after a script that the server had forgotten', async () => {
    const { queue } = await bootQueue(redis, {
      watch: false,
      queue: { durability: { timeout: 100 } },
      root: { enqueueTimeout: 2_000 },
    });
    for (let i = 0; i < 2; i++) {
      await redis.admin.script('FLUSH');
      replica.stop();
      expect(await outcome(queue.add('one', null), 2_000)).toMatchObject({ asked: 1, answered: 0 });
      replica.goOn();
    }
    await redis.admin.script('FLUSH');
    await queue.add('one', null);
    expect(await queue.counts()).toMatchObject({ waiting: 3 });
  });
});

describe('if replies are lost', () => {
  async function bootBehindCut(options: QueueAppOptions = {}) {
    const cut = await startCut(server.url);
    const root = { ...options.root, connection: cut.url };
    const app = await bootQueue(redis, { watch: false, queue: { durability: REPLICATED }, ...options, root });
    return { cut, queue: app.queue };
  }

  it.each([
    ['the script', isEnqueue],
    ['the WAIT', 'wait'],
  ])('stores a job once although the reply to %s is lost twice', async (_, match) => {
    const { cut, queue } = await bootBehindCut();
    const lost = cut.cutOnReply(match, 2);
    expect(await queue.add('one', null)).toMatchObject({ duplicate: false });
    await lost.done;
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
  });

  it.each([
    ['the script', isEnqueue],
    ['the WAIT', 'wait'],
  ])('waits on the new connection as on the first, when the reply to %s is lost', async (_, match) => {
    const { cut, queue } = await bootBehindCut({ root: { enqueueTimeout: '2s' } });
    // Redis knows the script, and everything so far is confirmed.
    await queue.add('warm', null);
    replica.stop();
    const lost = cut.cutOnReply(match);
    const error = await outcome(queue.add('one', null), 2_000);
    await lost.done;
    expect(error).toMatchObject({ code: 'GODWIT_NOT_REPLICATED', asked: 1, answered: 0 });
    expect(await queue.counts()).toMatchObject({ waiting: 2 });
  });

  it('writes in each repetition, because WAIT covers only the writes of its own connection', async () => {
    const { get } = await bootQueue(redis, { watch: false });
    const engine = get<QueueEngine>(QUEUE_ENGINE);
    const writes = async () =>
      Number(/rdb_changes_since_last_save:(\d+)/.exec(await redis.admin.info('persistence'))![1]);
    const jobs = [{ id: 'a', name: 'one', body: 'one\n{}' }];
    const call = { lane: 'lane', seq: 1, rememberMs: 60_000, withinMs: 5_000, jobs };
    await engine.enqueue('work', call);
    const before = await writes();
    expect(await engine.enqueue('work', call)).toEqual({ kind: 'stored', duplicates: [] });
    expect(await writes()).toBe(before + 1);
  });

  it('ends within its timeout if the primary hangs', async () => {
    const { queue } = await bootBehindCut({ root: { enqueueTimeout: SOON } });
    await queue.add('warm', null);
    process.kill(server.pid!, 'SIGSTOP');
    try {
      const error: unknown = await outcome(queue.add('one', null));
      expect(error).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE', applied: 'unknown' });
    } finally {
      process.kill(server.pid!, 'SIGCONT');
    }
    await until(() => queue.add('one', null), PATIENT);
  });

  it('survives that the primary becomes a replica while it waits, and comes back', async () => {
    const { queue } = await bootBehindCut({ root: { enqueueTimeout: '15s' } });
    await queue.add('warm', null);
    replica.stop();
    const added = queue.add('one', null, { id: 'a' });
    await until(() => redis.admin.hexists(`{${redis.prefix}:work}:jobs`, 'a'));
    await redis.admin.replicaof('127.0.0.1', 1);
    await until(async () => (await calls('wait')) > 0);
    await redis.admin.replicaof('NO', 'ONE');
    replica.goOn();
    expect(await within(added, { timeout: 15_000 })).toMatchObject({ id: 'a', duplicate: false });
    expect(await queue.counts()).toMatchObject({ waiting: 2 });
  });

  it('reports "no" for adds that were never sent because earlier ones still wait', async () => {
    const { queue } = await bootBehindCut({ root: { enqueueTimeout: SOON } });
    await queue.add('warm', null);
    replica.stop();
    const ids = Array.from({ length: 60 }, (_, i) => i);
    // Adds of another durability travel in a call of their own.
    const adds = ids.map((i) => queue.add('one', null, { id: `${i}`, durability: { timeout: 100 + i } }));
    const ended = await within(Promise.allSettled(adds), {
      timeout: SOON + LATE_MS,
      what: 'all are decided',
    });
    const applied = ended.map(
      (end) => end.status === 'rejected' && (end.reason as NotReplicatedError).applied,
    );
    const stored = new Set(await redis.admin.hkeys(`{${redis.prefix}:work}:jobs`));
    expect(applied.filter((said, i) => said === 'no' && stored.has(`${i}`))).toEqual([]);
    expect(applied[0]).toBe('unknown');
    expect(applied.at(-1)).toBe('no');
  });
});

describe('the connection that waits', () => {
  it('is opened by the first replicated add, and closed with the application', async () => {
    const { queue, close } = await bootQueue(redis, { watch: false });
    await queue.add('one', null);
    await queue.addBulk([{ name: 'many', data: null }]);
    expect(await roles()).toEqual(['command']);
    await queue.add('one', null, { durability: REPLICATED });
    expect(await roles()).toEqual(['command', 'replicated']);
    await close();
    await until(async () => (await redis.clients()).length === 0);
  });

  it('carries the replicated adds of a tick in one call, beside the local ones in another', async () => {
    const queues = ['work', 'more'];
    const { queueOf, queue } = await bootQueue(redis, {
      watch: false,
      queue: { durability: REPLICATED },
      queues: [{ name: 'more', durability: REPLICATED }],
    });
    await queue.add('warm', null);
    // After a single add the first one would be sent alone.
    await Promise.all([1, 2].map((n) => queue.add('warm', n, { durability: 'local' })));
    await redis.admin.config('RESETSTAT');
    const each = Array.from({ length: 200 }, (_, i) => i);
    await Promise.all(
      each.map((i) => queueOf(queues[i % 2]!).add('one', null, i % 4 < 2 ? {} : { durability: 'local' })),
    );
    expect(await calls('wait')).toBe(1);
    expect(await calls('evalsha')).toBe(4);
    expect(await queue.counts()).toMatchObject({ waiting: 103 });
  });

  it('gives a bulk the strictest durability of its jobs', async () => {
    const { queue } = await bootQueue(redis, { ...soon, queue: {} });
    const plain = { name: 'many', data: null };
    await queue.addBulk([plain, { ...plain, options: { durability: REPLICATED } }]);
    expect(await calls('wait')).toBeGreaterThan(0);
    const bulk = queue.addBulk([plain, { ...plain, options: { durability: { replicas: 3 } } }, plain]);
    expect(await outcome(bulk)).toMatchObject({ asked: 3, answered: 1 });
    expect(await queue.counts()).toMatchObject({ waiting: 5 });
  });
});
