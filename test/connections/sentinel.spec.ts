import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startSentinel, type RunningSentinel } from '../../tools/redis/sentinel.mjs';
import { bootWorking } from '../faults/support/app.js';
import { leaseMs, renewed } from '../faults/support/beating.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { latch, until } from '../support/wait.js';

let sentinel: RunningSentinel;
beforeAll(async () => {
  sentinel = await startSentinel();
});
afterAll(() => sentinel.stop());

// First of all: sentinels that have been stopped begin no failover for half a minute.
it('registers the worker processes at the new primary', async () => {
  const app = await bootQueue(
    { url: '', prefix: 'registry' },
    { root: { connection: sentinel.connection }, handlers: { '*': () => 1 }, watch: false },
  );
  const states = async () => (await app.get(QueueInspector).workers()).map(({ state }) => state);
  await until(async () => (await states()).length === 1, PATIENT);
  await sentinel.healthy();
  await sentinel.failover();
  app.runtime.pause();
  const state = await until(async () => (await states()).find((one) => one === 'paused'), PATIENT);
  expect(state).toBe('paused');
}, 60_000);

it('finds the primary by its sentinels, with every connection and from the thread', async () => {
  const end = latch('the end of the job');
  atEnd(() => end.open());
  const lease = { duration: '1s' };
  const { engine, queue } = await bootWorking({ connection: sentinel.connection, lease }, () => end.promise);
  await queue.add('long', null);
  await renewed(engine, 'work');
  for (const until = performance.now() + 2_000; performance.now() < until;);
  expect(await leaseMs(engine, 'work')).toBeGreaterThan(0);
  end.open();
  await until(async () => (await queue.counts()).active === 0);
});

it('finds it if some sentinels are silent, and writes nothing to standard error', async () => {
  const written = vi.spyOn(console, 'error');
  atEnd(() => written.mockRestore());
  const [first, second] = sentinel.sentinels;
  for (const { process: one } of [first!, second!]) {
    process.kill(one.pid, 'SIGSTOP');
    atEnd(() => process.kill(one.pid, 'SIGCONT'));
  }
  const app = await bootWorking({ connection: sentinel.connection, enqueueTimeout: '20s' });
  await app.queue.add('one', null);
  await until(() => app.runs.size === 1, { timeout: 15_000 });
  expect(written).not.toHaveBeenCalled();
});
