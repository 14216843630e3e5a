import { describe, expect, it } from 'vitest';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { callOf } from '../scripts/support.js';
import {
  bootQueue,
  describeOnRedis,
  itOnRedis,
  keyOf,
  PATIENT,
  type QueueApp,
} from '../support/queue-app.js';
import { refused } from '../support/queue-states.js';
import { startCut } from '../support/cut.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

/** A job whose data is in a codec, as a newer version may add it. */
const BODY = 'send\nkz\n{"p":2,"traceparent":"00-ab"}\n~z:AAAA';

async function addNewer({ get }: QueueApp, id: string): Promise<void> {
  const call = callOf([{ id, name: 'send', body: BODY, priority: 2 }], 1, `newer ${id}`);
  await get<QueueEngine>(QUEUE_ENGINE).enqueue('work', call);
}

describe('a job whose data only a newer version can decode', () => {
  it('is dead as undecodable, with all its readable fields, and can be retried', async () => {
    const app = await bootQueue(redis, { handlers: { send: () => 1 }, root: { log: true } });
    const { queue, ended, said } = app;
    await addNewer(app, 'n');
    expect(await ended('n')).toMatchObject({ type: 'dead', name: 'send', attempt: 0, reason: 'undecodable' });
    expect(app.logs.complaints.join()).toContain('is dead: its data is encoded with "~z"');
    const [job] = (await queue.dead.list({ reason: 'undecodable' })).jobs;
    expect(job).toMatchObject({ id: 'n', name: 'send', data: undefined, reason: 'undecodable', attempt: 0 });
    const stored = () => app.get<QueueEngine>(QUEUE_ENGINE).admin.get('work', 'n');
    expect(await stored()).toMatchObject({ state: 'dead', body: BODY });
    await queue.pause();
    await queue.dead.retry('n');
    expect(await stored()).toMatchObject({ state: 'waiting', body: BODY });
    expect(await queue.get('n')).toMatchObject({ name: 'send', data: undefined, failure: null });
    expect(said.values.filter(({ type }) => type === 'active')).toHaveLength(1);
  });

  it('waits if its name has no handler: the process that has one may be the newer one', async () => {
    const app = await bootQueue(redis, { handlers: { other: () => 1 } });
    await addNewer(app, 'n');
    await until(async () => (await app.queue.counts()).delayed === 1, PATIENT);
    expect(await app.queue.counts()).toMatchObject({ dead: 0 });
    await app.queue.remove('n');
  });
});

describe('what this version does not know', () => {
  itOnRedis('is shown as it is: the reason of a dead job, in its record and its event', async () => {
    const app = await bootQueue(redis, { handlers: { die: () => Promise.reject(new Error('no')) } });
    await app.queue.add('die', 1, { id: 'd', attempts: 1 });
    await app.ended('d');
    const failure = `1\n${JSON.stringify({ name: 'Error', message: 'm', attempt: 1, code: 7, reason: 'bored' })}`;
    await redis.admin.hset(keyOf(redis, 'failures'), 'd', failure);
    const { jobs } = await app.queue.dead.list();
    expect(jobs).toMatchObject([{ id: 'd', reason: 'bored', failure: { message: 'm' } }]);
    expect(await app.queue.get('d')).toMatchObject({ state: 'dead', failure: { reason: 'bored' } });
    await app.queue.dead.retry('d');
    expect(await app.ended('d')).toMatchObject({ type: 'dead' });
  });
});

describeOnRedis('the format of a queue', () => {
  const formatOf = (queue = 'work') => redis.admin.hget(keyOf(redis, 'meta', queue), 'format');
  const REFUSAL = {
    code: 'GODWIT_QUEUE_FORMAT',
    queue: 'work',
    found: 2,
    known: 1,
    message: expect.stringContaining("queue 'work' has format 2, written by a newer version of godwit"),
  };

  it('is written when a process first connects, and outlives everything else of the queue', async () => {
    const { queue } = await bootQueue(redis, { queues: [{ name: 'other' }] });
    expect([await formatOf(), await formatOf('other')]).toEqual(['1', '1']);
    await queue.obliterate();
    expect(await formatOf()).toBe('1');
  });

  it('of a newer version fails the start, with a message and without changes', async () => {
    await redis.admin.hset(keyOf(redis, 'meta'), 'format', 2);
    const error = await refused(bootQueue(redis, { handlers: { send: () => 1 } }));
    expect(error).toMatchObject(REFUSAL);
    expect(await redis.keys()).toEqual([keyOf(redis, 'meta')]);
    expect(await redis.admin.hgetall(keyOf(redis, 'meta'))).toEqual({ format: '2' });
  });

  it('is checked on each new connection: a running process refuses from then on', async () => {
    const app = await bootQueue(redis);
    await redis.admin.hset(keyOf(redis, 'meta'), 'format', 2);
    await redis.admin.call('CLIENT', 'KILL', 'USER', new URL(redis.url).username);
    await app.logs.complaint(/queue 'work' has format 2/);
    expect(await refused(app.queue.add('send', 1))).toMatchObject(REFUSAL);
    expect(await redis.admin.exists(keyOf(redis, 'wait'))).toBe(0);
  });

  it('is checked when Redis is reachable, if it was away at the start', async () => {
    await redis.admin.hset(keyOf(redis, 'meta'), 'format', 2);
    const cut = await startCut(redis.url);
    cut.refuse();
    const app = await bootQueue({ url: cut.url, prefix: redis.prefix }, { watch: false });
    const add = refused(app.queue.add('send', 1));
    await cut.heal();
    expect(await add).toMatchObject(REFUSAL);
  });
});
