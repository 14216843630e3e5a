import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { useRedis } from '../support/redis.js';
import { KEEPING, useServer } from '../support/server.js';
import { until, within } from '../support/wait.js';
import { bootWorking, drained } from './support/app.js';
import { onceEach } from './support/ledger.js';

// The server runs and cannot serve. Each case is waited out and logged.
const WAIT_MS = 15_000;

describe('a server that loads its data', () => {
  // Delay per key in µs, so that loading takes as long as with gigabytes of data.
  const LOADING_MS = 2_000;
  const KEYS = 10_000;
  const slowly = `--key-load-delay ${(LOADING_MS * 1_000) / KEYS} --loading-process-events-interval-bytes 1024`;
  const server = useServer({ args: [...KEEPING, ...slowly.split(' ')] });
  const redis = useRedis({ server });

  it('is waited for, and what was acknowledged is there', async () => {
    await redis.admin.call('DEBUG', 'POPULATE', KEYS, 'filler');
    await redis.admin.bgrewriteaof();
    await until(async () => (await redis.admin.info('persistence')).includes('aof_rewrite_in_progress:0'));
    atEnd(() => redis.admin.flushall());
    const app = await bootWorking({ connection: redis.url, prefix: redis.prefix, enqueueTimeout: '20s' });
    const later = Array.from({ length: 20 }, (_, i) => `later-${i}`);
    await app.queue.addBulk(later.map((id) => ({ name: 'job', data: null, options: { id, delay: 1_500 } })));
    await server.kill9();
    const restarted = server.restart();
    const meanwhile = app.queue.add('job', null, { id: 'meanwhile' });
    const refused: string[] = [];
    const probe = new Redis(server.port, { enableReadyCheck: false });
    probe.on('error', () => undefined);
    atEnd(() => probe.disconnect());
    await until(
      () =>
        probe.get('x').then(
          () => refused.length > 0,
          (error: Error) => refused.push(error.message) === 0,
        ),
      { timeout: WAIT_MS },
    );
    await restarted;
    const since = performance.now();
    await within(meanwhile, { timeout: WAIT_MS });
    await until(() => app.runs.size === later.length + 1, { timeout: WAIT_MS });
    expect(performance.now() - since).toBeLessThan(3_000);
    // The server was loading, and not only away.
    expect(refused.join()).toContain('LOADING');
    await drained(app);
    expect(app.runs).toEqual(onceEach([...later, 'meanwhile']));
    expect(app.links.some(({ state }) => state === 'down')).toBe(true);
  });
});

describe('a server that is busy with the script of somebody else', () => {
  const server = useServer({ args: ['--busy-reply-threshold', '100'] });
  const redis = useRedis({ server });

  it('is waited for, with no add refused and no job run twice', async () => {
    const app = await bootWorking({ connection: redis.url, prefix: redis.prefix });
    await app.queue.add('job', null, { id: 'before' });
    await drained(app);
    const other = new Redis(redis.url);
    atEnd(() => other.disconnect());
    const endless = other.eval('while true do end', 0).catch((error: Error) => error.message);
    await until(() =>
      redis.admin.get('x').then(
        () => false,
        (error: Error) => error.message.startsWith('BUSY'),
      ),
    );
    const adds = [
      app.queue.add('job', null, { id: 'a' }),
      app.queue.addBulk([{ name: 'job', data: null, options: { id: 'b' } }]),
    ];
    // Long enough for several refusals of each kind.
    const busyUntil = performance.now() + 1_500;
    await until(() => performance.now() > busyUntil);
    await redis.admin.call('SCRIPT', 'KILL');
    expect(await endless).toContain('killed');
    await Promise.all(adds);
    await drained(app);
    expect(app.runs).toEqual(onceEach(['before', 'a', 'b']));
  });
});

describe('a server that takes no more clients', () => {
  const MAX = 12;
  const server = useServer({ args: ['--maxclients', String(MAX)] });
  const redis = useRedis({ server });

  /** Takes all connections that are left. */
  async function crowd(): Promise<() => Promise<void>> {
    const clients: Redis[] = [];
    const leave = async () => {
      for (const client of clients) client.disconnect();
    };
    atEnd(leave);
    for (let full = false; !full;) {
      const client = new Redis(redis.url, { retryStrategy: null, lazyConnect: true });
      client.on('error', () => undefined);
      clients.push(client);
      full = await client
        .connect()
        .then(() => client.ping())
        .then(
          () => false,
          () => true,
        );
    }
    return leave;
  }

  it('is waited for at the start', async () => {
    const leave = await crowd();
    const app = await bootWorking({ connection: redis.url, prefix: redis.prefix, enqueueTimeout: '20s' });
    const added = app.queue.add('job', null, { id: 'a' });
    await until(() => app.links.some(({ error }) => error !== undefined), { timeout: WAIT_MS });
    await leave();
    await within(added, { timeout: WAIT_MS });
    await drained(app);
    expect(app.runs).toEqual(onceEach(['a']));
  });

  it('is waited for by an application that has lost its connections', async () => {
    const app = await bootWorking({ connection: redis.url, prefix: redis.prefix, enqueueTimeout: '20s' });
    await app.queue.add('job', null, { id: 'before' });
    await drained(app);
    await redis.admin.config('SET', 'maxclients', 1);
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const added = app.queue.add('job', null, { id: 'a' });
    await until(() => app.links.filter(({ error }) => error !== undefined).length > 3, { timeout: WAIT_MS });
    await redis.admin.config('SET', 'maxclients', MAX);
    await within(added, { timeout: WAIT_MS });
    await drained(app);
    expect(app.runs).toEqual(onceEach(['before', 'a']));
  });
});
