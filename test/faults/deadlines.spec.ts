import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { startCut } from '../support/cut.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';

const server = useServer();
const redis = useRedis({ server });
/** What a busy machine may add to a time. */
const LATE_MS = 1_000;

/** How long an act takes, and the error it ends with. */
async function failing(act: () => Promise<unknown>) {
  const since = performance.now();
  const error = await act().then(
    () => 'no error',
    (reason: unknown) => reason,
  );
  return { error, ms: performance.now() - since };
}

/** Redis stands still until the end of the test. */
function stall(): void {
  process.kill(server.pid!, 'SIGSTOP');
  atEnd(() => process.kill(server.pid!, 'SIGCONT'));
}

describe('while Redis stands still', () => {
  it.each(['300ms', '1200ms'])('a wait ends after %s', async (waitTimeout) => {
    const app = await bootQueue(redis, { watch: false });
    stall();
    const { error, ms } = await failing(() => app.queue.addAndWait('job', null, { waitTimeout }));
    expect(error).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE' });
    expect(ms).toBeGreaterThan(Number.parseInt(waitTimeout, 10) - 10);
    expect(ms).toBeLessThan(Number.parseInt(waitTimeout, 10) + LATE_MS);
  });

  it.each([300, 3_000])('an add ends after %i ms', async (enqueueTimeout) => {
    const app = await bootQueue(redis, { root: { enqueueTimeout }, watch: false });
    stall();
    const adds = [1, 2, 3, 4].map((n) => failing(() => app.queue.add('job', n)));
    for (const { error, ms } of await Promise.all(adds)) {
      expect(error).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE' });
      expect(ms).toBeGreaterThan(enqueueTimeout - 10);
      expect(ms).toBeLessThan(enqueueTimeout + LATE_MS);
    }
  });

  it('an add that ends after a short time costs the connection nothing', async () => {
    const app = await bootQueue(redis, { root: { enqueueTimeout: 200 }, watch: false });
    const command = async () =>
      (await redis.clients()).find(({ name }) => name?.endsWith(':command'))?.['id'];
    const before = await until(command, PATIENT);
    process.kill(server.pid!, 'SIGSTOP');
    const { error } = await failing(() => app.queue.add('job', null));
    process.kill(server.pid!, 'SIGCONT');
    expect(error).toMatchObject({ applied: 'unknown' });
    await app.queue.add('job', null);
    expect(await command()).toBe(before);
  });
});

it('a stop ends in time while Redis stands still, also with a handler that never ends', async () => {
  const started = latch('the handler');
  const app = await bootQueue(redis, {
    root: { shutdown: { timeout: '700ms', grace: '100ms' } },
    handlers: {
      '*': () => {
        started.open();
        return new Promise(() => undefined);
      },
    },
    watch: false,
  });
  await app.queue.add('job', null);
  await started.promise;
  stall();
  const since = performance.now();
  await app.close();
  expect(performance.now() - since).toBeLessThan(800 + 2 * LATE_MS);
});

it('an add under way while the application closes is never said to have changed nothing', async () => {
  const cut = await startCut(redis.url);
  const app = await bootQueue(redis, { root: { connection: cut.url }, watch: false });
  await app.queue.add('before', null);
  cut.delay(300);
  const added = failing(() => app.queue.add('job', null));
  const bulk = failing(() => app.queue.addBulk([{ name: 'job', data: null }]));
  await new Promise((resolve) => setTimeout(resolve, 50));
  await app.close();
  for (const { error } of await Promise.all([added, bulk]))
    expect(error).toMatchObject({ applied: 'unknown' });
});
