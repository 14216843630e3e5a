import { describe, expect, it, vi } from 'vitest';
import { processKeys } from '#lib/engine/keys.js';
import { QueueInspector, type WorkerInfo } from '#lib/inspect/queue-inspector.js';
import type { Queue } from '#lib/producer/queue.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis, type TestRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until, within } from '../support/wait.js';
import { spawnApp, type AppProcess } from './support/spawn.js';

// Tests that start processes take as long as the machine does.
vi.setConfig({ testTimeout: 120_000 });

/** Long enough that a living process sends its beats in time while others start. */
const LEASE_MS = 2_000;
/** From the end of a lease until a test notices it, on a busy machine. */
const NOTICE_MS = 3_000;
const lease = { duration: LEASE_MS };

type Keys = ReturnType<typeof processKeys>;

/** An application that reads the registry and runs no jobs. */
async function bootWatcher(
  redis: TestRedis,
): Promise<{ queue: Queue; workers: () => Promise<WorkerInfo[]> }> {
  const { queue, get } = await bootQueue(redis, { root: { role: 'producer' }, watch: false });
  return { queue, workers: () => get(QueueInspector).workers() };
}

describe('a process', () => {
  const redis = useRedis();
  const startWorker = (more = {}): Promise<AppProcess> => {
    // A killed process leaves its record. No list shows it any more.
    atEnd(() => redis.flush());
    const root = { connection: redis.url, prefix: redis.prefix, lease: { ...lease, ...more } };
    return spawnApp({ root, concurrency: 3 });
  };

  it('that is killed is gone from the registry within its lease', async () => {
    const { workers, queue } = await bootWatcher(redis);
    const processes = [await startWorker(), await startWorker()];
    await queue.add('hold', null, { id: 'a' });
    const busy = await until(async () => {
      const found = await workers();
      return found.length === 2 && found.find(({ pools }) => pools[0]!.running === 1);
    }, PATIENT);
    const killed = processes.find(({ pid }) => pid === busy.pid)!;
    const other = processes.find((one) => one !== killed)!;
    killed.kill('SIGKILL');
    const since = performance.now();
    await until(async () => (await workers()).length === 1, PATIENT);
    expect(performance.now() - since).toBeLessThan(LEASE_MS + NOTICE_MS);
    expect(await workers()).toMatchObject([{ pid: other.pid }]);
    // The worker that takes its jobs can say where it was.
    const { text } = await other.first('log', ({ text: line }) => line.includes('went silent'));
    const [worker] = busy.pools[0]!.workers;
    const place = `worker ${worker} (host "${busy.host}", pid ${busy.pid}) went silent; 1 job`;
    expect(text).toContain(place);
    await other.call('release');
    other.kill('SIGTERM');
    await other.exit();
    // The process has reported it itself.
    expect(await workers()).toEqual([]);
  });

  it('whose handler blocks the event loop for three leases stays in the registry', async () => {
    const { workers, queue } = await bootWatcher(redis);
    const worker = await startWorker();
    await until(async () => (await workers()).length === 1, PATIENT);
    await queue.add('block', 3 * LEASE_MS, { id: 'a' });
    await worker.first('started');
    const looks: number[] = [];
    const isOver = worker.first('ended').then(() => true);
    while (!(await Promise.race([isOver, workers().then((found) => void looks.push(found.length))])));
    expect(looks.length).toBeGreaterThan(10);
    expect(new Set(looks)).toEqual(new Set([1]));
    worker.kill('SIGTERM');
    await worker.exit();
  });

  it('whose handler never returns is gone after maxBlock and the lease', async () => {
    const maxBlock = 1_000;
    const { workers, queue } = await bootWatcher(redis);
    const worker = await startWorker({ maxBlock });
    await until(async () => (await workers()).length === 1, PATIENT);
    // The report of its start may arrive late.
    const since = performance.now();
    await queue.add('stuck', null, { id: 'a' });
    await worker.first('started');
    await until(async () => (await workers()).length === 0, PATIENT);
    expect(performance.now() - since).toBeGreaterThan(maxBlock);
    worker.kill('SIGKILL');
    await worker.exit();
  });
});

describe('Redis', () => {
  const server = useServer();
  const redis = useRedis({ server });
  const bootWorker = () => bootQueue(redis, { handlers: { '*': () => 1 }, root: { lease }, watch: false });

  it('that restarts without its data gets the entries again', async () => {
    const app = await bootWorker();
    const workers = () => app.get(QueueInspector).workers();
    const [before] = await until(async () => (await workers()).length === 1 && workers(), PATIENT);
    await server.kill9();
    await server.restart();
    const [after] = await until(async () => (await workers()).length === 1 && workers(), PATIENT);
    expect(after).toMatchObject({ id: before!.id, startedAt: before!.startedAt, pid: process.pid });
  });

  it.each([
    ['the entry', Object.values],
    ['the lease', ({ processes }: Keys) => [processes]],
    ['the record', ({ processInfo }: Keys) => [processInfo]],
  ])('that loses %s of a living process gets it again within a lease', async (_, lost) => {
    const app = await bootWorker();
    const workers = () => app.get(QueueInspector).workers();
    await until(async () => (await workers()).length === 1, PATIENT);
    await redis.admin.del(...lost(processKeys(redis.prefix)));
    const since = performance.now();
    await until(async () => (await workers()).length === 1, PATIENT);
    expect(performance.now() - since).toBeLessThan(LEASE_MS + NOTICE_MS);
  });

  it('that is not there at the start gets the entry once it is', async () => {
    await server.kill9();
    atEnd(() => server.restart());
    const app = await bootWorker();
    await expect(app.get(QueueInspector).workers()).rejects.toMatchObject({
      code: 'GODWIT_REDIS_UNAVAILABLE',
    });
    await server.restart();
    await until(async () => (await app.get(QueueInspector).workers()).length === 1, PATIENT);
  });

  it.each(['gone', 'silent'])('that is %s at a stop does not delay it', async (how) => {
    const app = await bootWorker();
    await until(async () => (await app.get(QueueInspector).workers()).length === 1, PATIENT);
    if (how === 'gone') {
      await server.kill9();
      atEnd(() => server.restart());
    } else {
      process.kill(server.pid!, 'SIGSTOP');
      atEnd(() => process.kill(server.pid!, 'SIGCONT'));
    }
    await within(app.close(), PATIENT);
    if (how === 'gone') await server.restart();
    else process.kill(server.pid!, 'SIGCONT');
    const { workers } = await bootWatcher(redis);
    await until(async () => (await workers()).length === 0, PATIENT);
    expect(app.runtime.state).toBe('stopped');
    await redis.flush();
  });
});
