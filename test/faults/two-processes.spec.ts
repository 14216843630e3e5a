import { expect, it, vi } from 'vitest';
import { useRedis } from '../support/redis.js';
import { bootApp } from '../support/app.js';
import { PATIENT } from '../support/queue-app.js';
import { until } from '../support/wait.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import type { Queue } from '#lib/producer/queue.js';
import { Ledger, onceEach } from './support/ledger.js';
import { spawnApp } from './support/spawn.js';

// Tests that start processes take as long as the machine does.
vi.setConfig({ testTimeout: 120_000 });

const redis = useRedis();
const root = (more = {}) => ({ connection: redis.url, prefix: redis.prefix, ...more });

async function openQueue(): Promise<Queue> {
  const imports = [
    QueueModule.forRoot(root({ role: 'producer' })),
    QueueModule.registerQueue({ name: 'work' }),
  ];
  return (await bootApp({ imports })).get<Queue>(getQueueToken('work'));
}

it('runs a job that one process adds in another process', async () => {
  const ledger = new Ledger();
  const [producer, worker] = await Promise.all([
    spawnApp({ root: root({ role: 'producer' }) }),
    spawnApp({ root: root({ role: 'worker' }), concurrency: 10, ledger: ledger.file() }),
  ]);
  const { id } = await producer.call('add', 'quick', null, { retention: '1h' });
  await worker.first('ended');
  const stored = await until(async () => {
    const job = await producer.call('get', id);
    return job.state === 'completed' && job;
  });
  expect(stored).toMatchObject({ id, name: 'quick', state: 'completed' });
  expect(ledger.lines().map(({ what, pid }) => [what, pid])).toEqual([
    ['S', worker.pid],
    ['E', worker.pid],
  ]);
  producer.close();
  worker.close();
  const ended = { code: 0, signal: null };
  expect(await Promise.all([producer.exit(), worker.exit()])).toEqual([ended, ended]);
});

it('loses none of 1,000 jobs and runs none twice when a worker is stopped in the middle of them', async () => {
  const ledger = new Ledger();
  const queue = await openQueue();
  const worker = () => spawnApp({ root: root({ autoStart: false }), concurrency: 20, ledger: ledger.file() });
  const [first, second] = await Promise.all([worker(), worker()]);
  const jobs = Array.from({ length: 1_000 }, (_, i) => ({
    name: 'sleep',
    data: 20 + (i % 16) * 5,
    options: { id: `job-${i}` },
  }));
  await queue.addBulk(jobs.slice(0, 400));

  await first.call('start');
  await until(() => ledger.lines('E').length >= 200, PATIENT);
  await second.call('start');
  // However long the start took, enough jobs are left for both.
  await queue.addBulk(jobs.slice(400));
  await until(() => ledger.lines('S').length > 420, PATIENT);
  first.kill('SIGTERM');
  expect(await first.exit()).toEqual({ code: null, signal: 'SIGTERM' });
  await until(async () => Object.values(await queue.counts()).every((count) => count === 0), {
    timeout: 15_000,
    what: () => `the line is empty, ${ledger.lines('E').length} of 1,000 jobs have ended`,
  });

  const each = onceEach(jobs.map((job) => job.options.id));
  expect(ledger.times('S')).toEqual(each);
  expect(ledger.times('E')).toEqual(each);
  const by = (pid: number) => ledger.lines('E').filter((line) => line.pid === pid).length;
  expect(by(first.pid)).toBeGreaterThanOrEqual(200);
  expect(by(second.pid)).toBeGreaterThan(0);
  second.kill('SIGTERM');
  await second.exit();
});
