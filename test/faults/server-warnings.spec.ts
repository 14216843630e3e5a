import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import type { DurabilityOption } from '#lib/options/job-options.js';
import { freePort } from '../../tools/free-port.mjs';
import { aclRules } from '../../tools/acl.mjs';
import { startRedis, type RunningRedis } from '../../tools/redis.mjs';
import { bootApp } from '../support/app.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, Logs, PATIENT } from '../support/queue-app.js';
import { until } from '../support/wait.js';

const LASTING = ['--appendonly', 'yes'];
let primary: RunningRedis;
let replica: RunningRedis;

beforeAll(async () => {
  primary = await startRedis({ private: true, args: LASTING });
  replica = await startRedis({
    private: true,
    args: [...LASTING, '--replicaof', `127.0.0.1 ${primary.port}`],
  });
});
afterAll(() => Promise.all([primary.stop(), replica.stop()]));

/** An application that only adds. It has one queue for each durability. */
async function boot(connection: string, ...durabilities: DurabilityOption[]) {
  const logs = new Logs();
  const root = QueueModule.forRoot({ connection, role: 'producer' });
  const queues = durabilities.map((durability, i) => ({ name: `queue-${i}`, durability }));
  const { get } = await bootApp({
    imports: [root, ...(queues.length > 0 ? [QueueModule.registerQueue(...queues)] : [])],
    logger: logs,
  });
  const runtime = get(QueueRuntime);
  return {
    codes: () => runtime.warnings.map(({ code }) => code),
    runtime,
    warned: () => logs.lines.filter(({ level }) => level === 'warn').map(({ text }) => text),
    /** How often the log says that a lost connection works again. */
    returns: () => logs.lines.filter(({ text }) => text.endsWith('is up')).length,
  };
}

it('logs nothing if the server keeps jobs and has the required replicas', async () => {
  const { codes, warned } = await boot(primary.url, 'local');
  expect([codes(), warned()]).toEqual([[], []]);
  await until(async () => (await boot(primary.url, 'replicated')).codes().length === 0, PATIENT);
});

it('says that a queue asks for more replicas than there are', async () => {
  const { runtime, codes, warned } = await boot(primary.url, 'replicated', { replicas: 3 }, 'local');
  expect(codes()).toEqual(['too-few-replicas']);
  expect(runtime.warnings[0]!.message).toMatch(
    /^a queue wants each add confirmed by 3 replicas \(durability\), but Redis has [01]: such adds fail/,
  );
  expect(warned()).toEqual([runtime.warnings[0]!.message]);
});

it('says that it is connected to a replica', async () => {
  const { runtime, codes } = await boot(replica.url, 'replicated');
  expect(codes()).toEqual(['read-only-replica']);
  expect(runtime.warnings[0]!.message).toContain('connect to its primary');
});

it('does not open connections to a replica again and again, nor log each of them', async () => {
  const { logs, runtime } = await bootQueue(
    { url: replica.url, prefix: 'replica' },
    { handlers: { job: () => undefined }, root: { lease: { duration: '1s' } }, watch: false },
  );
  const admin = new Redis(replica.url);
  atEnd(() => admin.quit());
  const opened = async () => Number(/total_connections_received:(\d+)/.exec(await admin.info('stats'))![1]);
  const since = performance.now();
  const passed = (ms: number) => until(() => performance.now() - since > ms, { timeout: 2 * ms });
  // The first ones follow each other closely, because a failover usually takes a moment.
  await passed(3_000);
  const before = await opened();
  await passed(6_000);
  expect((await opened()) - before).toBeLessThan(15);
  expect(runtime.warnings.map(({ code }) => code)).toContain('read-only-replica');
  expect(logs.lines.filter(({ text }) => text.includes('connection to Redis')).length).toBeLessThan(12);
});

it('logs once what a later server lacks, also when it connects again', async () => {
  const port = await freePort();
  const { runtime, codes, warned, returns } = await boot(`redis://127.0.0.1:${port}`, { replicas: 2 });
  expect(codes()).toEqual([]);
  const late = await startRedis({ private: true, port, args: ['--maxmemory-policy', 'allkeys-lru'] });
  atEnd(() => late.stop());
  const all = ['evicts-keys', 'no-append-only-file', 'too-few-replicas'];
  await until(() => codes().length > 0, PATIENT);
  expect(codes().toSorted()).toEqual(all);
  const before = returns();
  await late.restart();
  await until(() => returns() > before, { ...PATIENT, what: 'the connection is back' });
  expect(codes().toSorted()).toEqual(all);
  const messages = runtime.warnings.map(({ message }) => message);
  expect(
    warned()
      .filter((text) => messages.includes(text))
      .toSorted(),
  ).toEqual(messages.toSorted());
});

// Without XADD, events were missing and nothing said why.
it.each([
  ['xadd', 'no events are written (XADD)'],
  ['xread', 'events cannot be read (XREAD)'],
  ['bzpopmin', 'workers cannot wait for jobs (BZPOPMIN)'],
])(
  'says once that the ACL user lacks the right to %s, because no call fails without it',
  async (command, text) => {
    const prefix = `no-${command}`;
    const admin = new Redis(primary.url);
    atEnd(() => admin.disconnect());
    const rules = [...aclRules({ prefix }), `-${command}`];
    await admin.call('ACL', 'SETUSER', prefix, 'reset', 'on', '>secret', ...rules);
    const url = `redis://${prefix}:secret@127.0.0.1:${primary.port}`;
    const ran: unknown[] = [];
    const app = await bootQueue({ url, prefix }, { handlers: { job: ({ data }) => void ran.push(data) } });
    await app.queue.add('job', 1);
    const lines = () => app.logs.lines.filter((line) => line.text.includes('ACL'));
    await until(() => ran.length === 1 && lines().length > 0, { ...PATIENT, what: 'a warning, and a run' });
    await app.queue.add('job', 2);
    await until(() => ran.length === 2, PATIENT);
    expect(lines()).toMatchObject([{ level: 'warn', text: expect.stringContaining(text) }]);
    expect(app.runtime.warnings.map(({ code }) => code)).toEqual(['missing-right']);
  },
);

it('says that TLS may be the reason if a server without it does not answer', async () => {
  const connection = { host: '127.0.0.1', port: primary.port, tls: {}, connectTimeout: 300 };
  const logs = new Logs();
  await bootApp({ imports: [QueueModule.forRoot({ connection, role: 'producer' })], logger: logs });
  const isDown = ({ text }: { text: string }) => text.includes('the command connection to Redis is down');
  await until(() => logs.lines.some(isDown), PATIENT);
  expect(logs.lines.find(isDown)?.text).toContain('uses TLS, but perhaps this port does not');
});
