import { beforeEach, expect, it, vi } from 'vitest';
import { getQueueToken } from '#lib/decorators/metadata.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootApp } from '../support/app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { Ledger, onceEach } from './support/ledger.js';
import { spawnWorker } from './support/spawn.js';

// Tests that start processes take as long as the machine does.
vi.setConfig({ testTimeout: 120_000 });

// Some tests stop in half a second. On a busy machine the record of the process may then end with its lease.
const redis = useRedis({ leaves: ['processes'] });
let queue: Queue;
let ledger: Ledger;

beforeEach(async () => {
  ledger = new Ledger();
  const root = QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix, role: 'producer' });
  const { get } = await bootApp({ imports: [root, QueueModule.registerQueue({ name: 'work' })] });
  queue = get<Queue>(getQueueToken('work'));
});

const startWorker = (shutdown: { timeout?: number; grace?: number } = {}) =>
  spawnWorker(redis, ledger, 4, { shutdown });

async function addJobs(count: number, name: string): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `${name}-${i}`);
  // One attempt only: if the end of the process counted as an attempt, the job would be dead.
  await queue.addBulk(ids.map((id) => ({ name, data: null, options: { id, attempts: 1 } })));
  return ids;
}

const BY_SIGTERM = { code: null, signal: 'SIGTERM' };

it('lets running jobs end and gives the others back on SIGTERM, also if it comes twice', async () => {
  const worker = await startWorker();
  const ids = await addJobs(10, 'hold');
  await worker.take(4, 'started');
  worker.kill('SIGTERM');
  worker.kill('SIGTERM');
  await until(async () => (await worker.call('state')) === 'draining');
  await worker.call('release');
  expect(await worker.exit()).toEqual(BY_SIGTERM);
  expect(ledger.times('E')).toEqual(onceEach(ids.slice(0, 4)));
  expect(worker.all('aborted')).toEqual([]);
  expect(await queue.counts()).toMatchObject({ waiting: 6, active: 0, dead: 0 });
  expect(worker.all('log').map(({ text }) => text)).toContain(
    `queue 'work' stopped: 4 running jobs finished meanwhile, 0 given back`,
  );
});

it('aborts at the deadline and gives back what does not end, without counting an attempt', async () => {
  const worker = await startWorker({ timeout: 300, grace: 200 });
  const ids = await addJobs(4, 'hold');
  await worker.take(4, 'started');
  worker.kill('SIGTERM');
  worker.kill('SIGTERM');
  const aborted = await worker.take(4, 'aborted');
  expect(aborted.map(({ reason }) => reason)).toEqual(Array(4).fill('shutdown'));
  expect(await worker.exit()).toEqual(BY_SIGTERM);
  expect(await queue.counts()).toMatchObject({ waiting: 4, active: 0, dead: 0, delayed: 0 });
  expect(await queue.get(ids[0]!)).toMatchObject({ state: 'waiting', attempt: 0, stalls: 0, failure: null });

  const next = await startWorker();
  await next.take(4, 'started');
  expect(next.all('started').map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1]);
  await next.call('release');
  next.kill('SIGTERM');
  expect(await next.exit()).toEqual(BY_SIGTERM);
  expect(ledger.times('E')).toEqual(onceEach(ids));
});

it('does not count the attempt of a job that fails because its signal was aborted at the deadline', async () => {
  const worker = await startWorker({ timeout: 200, grace: 5_000 });
  const ids = await addJobs(4, 'obey');
  await worker.take(4, 'started');
  worker.kill('SIGTERM');
  expect(await worker.exit()).toEqual(BY_SIGTERM);
  expect(worker.all('aborted')).toHaveLength(4);
  expect(await queue.counts()).toMatchObject({ waiting: 4, active: 0, dead: 0, delayed: 0 });
  expect(await queue.get(ids[0]!)).toMatchObject({ state: 'waiting', attempt: 0, failure: null });
  expect(worker.all('log').map(({ text }) => text)).toContain(
    `queue 'work' stopped: 0 running jobs finished meanwhile, 4 given back`,
  );
});

it('leaves nothing that keeps a closed application running', async () => {
  const worker = await startWorker();
  await addJobs(4, 'quick');
  await worker.take(4, 'ended');
  worker.close();
  expect(await worker.exit({ timeout: 10_000 })).toEqual({ code: 0, signal: null });
});
