import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import { atEnd } from '../support/cleanup.js';
import { startCut, type Cut } from '../support/cut.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';
import { Listening, Planned } from './support/listening.js';
import { timed } from './support/timed.js';

const server = useServer();
const redis = useRedis({ server });
/** The promises of `waitTimeout`, `enqueueTimeout` and `shutdown`, whatever Redis does. */
const EXACT_MS = 200;

/**
 * An act that Redis does not answer fails when its time is over.
 *
 * @param since when the first act of this tick began: all adds of a tick share its time.
 */
async function expectEndAfter(ms: number, act: () => Promise<unknown>, since: number) {
  const { error, ms: took, starvedMs } = await timed(act);
  expect(error).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE' });
  expect(performance.now() - since).toBeGreaterThan(ms - 10);
  expect(took - starvedMs).toBeLessThan(ms + EXACT_MS);
}

/** Redis stands still until the end of the test. */
function stall(): void {
  process.kill(server.pid!, 'SIGSTOP');
  atEnd(() => process.kill(server.pid!, 'SIGCONT'));
}

/** The test deletes what the processes could not remove. */
async function heal(cut: Cut): Promise<void> {
  process.kill(server.pid!, 'SIGCONT');
  await cut.heal();
  await redis.flush();
}

const FAULTS: Record<string, (cut: Cut) => void> = {
  'stands still': stall,
  'answers late': (cut) => cut.delay(1_000),
  'is gone': (cut) => {
    cut.refuse();
    cut.drop();
  },
};

describe.each(Object.entries(FAULTS))('while Redis %s', (_, begin) => {
  it('waits and adds end in time', async () => {
    const cut = await startCut(redis.url);
    const boot = (enqueueTimeout: number) =>
      bootQueue(redis, { root: { connection: cut.url, enqueueTimeout }, watch: false });
    const [short, long] = await Promise.all([boot(300), boot(3_000)]);
    const wait = (waitTimeout: number) => () => long.queue.addAndWait('job', null, { waitTimeout });
    // It subscribes.
    await timed(wait(10));
    begin(cut);
    const since = performance.now();
    const adds = [1, 2, 3].map((n) => expectEndAfter(300, () => short.queue.add('job', n), since));
    const acts = [...adds, expectEndAfter(300, wait(300), since), expectEndAfter(1_200, wait(1_200), since)];
    // Where answers come late, this is long enough for one.
    if (begin !== FAULTS['answers late'])
      acts.push(expectEndAfter(3_000, () => long.queue.add('job', 4), since));
    await Promise.all(acts);
    await heal(cut);
  });

  it.each([0, 2_500])('a stop ends in time, after %i ms of it', async (ms) => {
    const started = latch('the handler');
    const cut = await startCut(redis.url);
    const app = await bootQueue(redis, {
      root: { connection: cut.url, shutdown: { timeout: '700ms', grace: '100ms' } },
      queues: [{ name: 'planned' }],
      handlers: {
        quick: () => 1,
        '*': () => {
          started.open();
          return new Promise(() => undefined);
        },
      },
      providers: [Listening, Planned],
      watch: false,
    });
    await app.queue.addAndWait('quick', null);
    await app.queue.add('job', null);
    await started.promise;
    begin(cut);
    await pause(ms);
    const stop = await timed(() => app.close());
    expect(stop.ms - stop.starvedMs).toBeLessThan(800 + EXACT_MS);
    await heal(cut);
  });
});

describe('while Redis is stopped', () => {
  it('an add that ends after a short time costs the connection nothing', async () => {
    const app = await bootQueue(redis, { root: { enqueueTimeout: 200 }, watch: false });
    const command = async () =>
      (await redis.clients()).find(({ name }) => name?.endsWith(':command'))?.['id'];
    const before = await until(command, PATIENT);
    process.kill(server.pid!, 'SIGSTOP');
    const { error } = await timed(() => app.queue.add('job', null));
    process.kill(server.pid!, 'SIGCONT');
    expect(error).toMatchObject({ applied: 'unknown' });
    await app.queue.add('job', null);
    expect(await command()).toBe(before);
  });

  it('the last try of an add, with little time left, does not break the connection for other calls', async () => {
    const app = await bootQueue(redis, { watch: false });
    const engine = app.get<RedisEngine>(QUEUE_ENGINE);
    await app.queue.add('job', null);
    const cut = latch<Error | undefined>('the connection is cut');
    const unwatch = engine.onLink(({ role, error }) => role === 'command' && error && cut.open(error));
    process.kill(server.pid!, 'SIGSTOP');
    const other = timed(() => app.queue.counts());
    const jobs = [{ id: 'late', name: 'job', body: 'job\n1\n{}\nnull', hasOwnId: true }];
    // Like the last try after an outage: the default time is nearly over.
    const call = { lane: 'late', seq: 1, rememberMs: 10_000, withinMs: 50, isBound: false, jobs };
    const last = await timed(() => engine.enqueue('work', call));
    process.kill(server.pid!, 'SIGCONT');
    expect(last.error).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE', applied: 'unknown' });
    expect(last.ms - last.starvedMs).toBeLessThan(1_000);
    expect((await other).error).toBeUndefined();
    unwatch();
    expect(cut.isOpen).toBe(false);
  });
});

it('an add in flight while the application closes is never reported as not applied', async () => {
  const cut = await startCut(redis.url);
  const app = await bootQueue(redis, { root: { connection: cut.url }, watch: false });
  await app.queue.add('before', null);
  cut.delay(300);
  const added = timed(() => app.queue.add('job', null));
  const bulk = timed(() => app.queue.addBulk([{ name: 'job', data: null }]));
  await pause(50);
  await app.close();
  for (const { error } of await Promise.all([added, bulk]))
    expect(error).toMatchObject({ applied: 'unknown' });
});
