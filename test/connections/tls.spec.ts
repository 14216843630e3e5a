import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ConnectionOption } from '#lib/options/connection.js';
import { freePort } from '../../tools/free-port.mjs';
import { startRedis, type RunningRedis } from '../../tools/redis.mjs';
import { startCluster } from '../../tools/redis/cluster.mjs';
import { bootWorking } from '../faults/support/app.js';
import { leaseMs, renewed } from '../faults/support/beating.js';
import { atEnd } from '../support/cleanup.js';
import { latch, until } from '../support/wait.js';

let dir: string;
let ca: string;

/** An authority of our own, and a certificate of it for 127.0.0.1. */
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'godwit-tls-'));
  const openssl = (line: string) => execFileSync('openssl', line.split(' '), { cwd: dir, stdio: 'pipe' });
  const key = '-newkey rsa:2048 -nodes -days 1';
  openssl(`req -x509 ${key} -keyout ca.key -out ca.crt -subj /CN=test-authority`);
  openssl(
    `req -x509 ${key} -keyout redis.key -out redis.crt -subj /CN=127.0.0.1 -CA ca.crt -CAkey ca.key ` +
      '-addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:false',
  );
  ca = readFileSync(join(dir, 'ca.crt'), 'utf8');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const certificates = () =>
  Object.entries({ cert: 'redis.crt', key: 'redis.key', 'ca-cert': 'ca.crt' })
    .flatMap(([what, file]) => [`--tls-${what}-file`, join(dir, file)])
    .concat('--tls-auth-clients', 'no');

async function startTls(): Promise<{ server: RunningRedis; port: number }> {
  const port = await freePort();
  const server = await startRedis({ private: true, args: ['--tls-port', String(port), ...certificates()] });
  atEnd(() => server.stop());
  return { server, port };
}

/** Adds a job and runs it; while it runs, the event loop stands still for longer than the lease. Answers what is left of that. */
async function work(connection: ConnectionOption): Promise<number> {
  const end = latch('the end of the job');
  atEnd(() => end.open());
  const app = await bootWorking({ connection, lease: { duration: '1s' } }, () => end.promise);
  await app.queue.add('one', null);
  await renewed(app.engine, 'work');
  for (const until = performance.now() + 2_000; performance.now() < until;);
  const left = await leaseMs(app.engine, 'work');
  end.open();
  await until(async () => (await app.queue.counts()).active === 0);
  await app.close();
  return left ?? 0;
}

it('works over TLS with a custom certificate authority, also in the thread', async () => {
  const { port } = await startTls();
  expect(await work({ host: '127.0.0.1', port, tls: { ca } })).toBeGreaterThan(0);
  expect(await work({ url: `rediss://127.0.0.1:${port}`, tls: { ca } })).toBeGreaterThan(0);
});

it('does not trust a certificate of an unknown authority, and logs it', async () => {
  const { port } = await startTls();
  const { queue, links } = await bootWorking({
    connection: `rediss://127.0.0.1:${port}`,
    enqueueTimeout: '500ms',
  });
  await expect(queue.add('one', null)).rejects.toMatchObject({
    code: 'GODWIT_REDIS_UNAVAILABLE',
    applied: 'no',
    message: expect.stringContaining('self-signed certificate'),
  });
  expect(links.every(({ state }) => state === 'down')).toBe(true);
});

it('works over TLS with every node of a cluster', async () => {
  const cluster = await startCluster({ tls: certificates() });
  atEnd(() => cluster.stop());
  const [first] = cluster.nodes;
  expect(
    await work({ cluster: [`rediss://127.0.0.1:${first!.tlsPort}`], redisOptions: { tls: { ca } } }),
  ).toBeGreaterThan(0);
});
