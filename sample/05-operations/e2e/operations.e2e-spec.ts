import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { QueueProbes } from 'godwit/probes';
import { expect, test } from 'vitest';
import { atEnd } from '../../../test/support/cleanup.js';
import { useRedis } from '../../../test/support/redis.js';
import { until } from '../../../test/support/wait.js';
import { WorkerProcesses } from '../src/worker-processes.js';

const redis = useRedis();

test('the web process adds jobs, a worker runs them, and the dashboard shows both to those with the password', async () => {
  process.env['REDIS_URL'] = redis.url;
  process.env['QUEUE_PREFIX'] = redis.prefix;
  const { AppModule } = await import('../src/app.module.js');
  const { WorkerModule } = await import('../src/worker.module.js');
  const web = await NestFactory.create(AppModule, { logger: false });
  atEnd(() => web.close());
  await web.listen(0, '127.0.0.1');
  const worker = await NestFactory.createApplicationContext(WorkerModule, { logger: false });
  atEnd(() => worker.close());
  const { port } = web.getHttpServer().address() as AddressInfo;
  const ask = (path: string, password: string) =>
    fetch(`http://127.0.0.1:${port}/queues/${path}`, {
      headers: {
        authorization: `Basic ${Buffer.from(`ops:${password}`).toString('base64')}`,
        connection: 'close',
      },
    });

  const refused = await ask('', 'wrong');
  expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="queues"']);
  expect((await ask('', 'ops')).status).toBe(200);

  interface Overview {
    queues: { name: string; consumers: number; today: { processed: number } }[];
  }
  const overview = async () => (await (await ask('api/v1/overview', 'ops')).json()) as Overview;
  await until(async () => (await overview()).queues[0]!.today.processed > 5, { timeout: 20_000 });
  await until(async () => (await overview()).queues.every(({ consumers }) => consumers === 1), {
    timeout: 20_000,
  });
  expect((await overview()).queues.map(({ name }) => name)).toEqual(['emails', 'media', 'reports']);

  const metrics = async (password: string) => {
    const authorization = `Basic ${Buffer.from(`ops:${password}`).toString('base64')}`;
    const headers = { authorization, connection: 'close' };
    return fetch(`http://127.0.0.1:${port}/metrics`, { headers });
  };
  expect((await metrics('wrong')).status).toBe(401);
  expect(await (await metrics('ops')).text()).toContain('godwit_queue_workers{queue="emails"} 1\n');
  const ofWorker = await fetch(`http://127.0.0.1:${worker.get(QueueProbes).port}/metrics`);
  const text = await ofWorker.text();
  expect(text).toMatch(/^godwit_runs_total\{queue="emails",name="receipt",outcome="completed"\} [1-9]/m);
  expect(text).not.toContain('godwit_queue_jobs');
});

test('a stop waits until both worker processes have ended', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'godwit-spec-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'worker.mjs');
  writeFileSync(
    file,
    `import { writeFileSync } from 'node:fs';
    import { setTimeout } from 'node:timers/promises';
    const said = (what) => writeFileSync(${JSON.stringify(folder)} + '/' + process.pid + '.' + what, '');
    process.on('SIGTERM', async () => { await setTimeout(100); said('ended'); process.exit(); });
    setInterval(() => {}, 1000);
    said('up');`,
  );
  const workers = new WorkerProcesses(file);
  atEnd(() => workers.onApplicationShutdown());
  const count = (what: string) => readdirSync(folder).filter((name) => name.endsWith(what)).length;
  workers.onApplicationBootstrap();
  await until(() => count('.up') === 2);
  await workers.onApplicationShutdown();
  expect(count('.ended')).toBe(2);
});
