import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TerminusModule } from '@nestjs/terminus';
import { beforeAll, expect, it } from 'vitest';
import { createProducer } from '#lib/subpaths/standalone.js';
import { QueueHealthIndicator } from '#lib/subpaths/terminus.js';
import { runOn } from '../cli/support.js';
import { atEnd } from '../support/cleanup.js';
import { bootDashboard } from '../support/dashboard.js';
import { bootQueue, isOver, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { latch, until } from '../support/wait.js';
import { onceEach } from './support/ledger.js';
import { useReplica } from './support/replica.js';

// Redis answers, and refuses to write. Such an answer is certain: nothing was changed.
const server = useServer({ args: ['--enable-protected-configs', 'yes'] });
const redis = useRedis({ server, rights: 'all', refusals: true });
const replica = useReplica(server);

beforeAll(() => replica.client.ping());

const config = (...args: string[]) => redis.admin.call('CONFIG', 'SET', ...args);

/** The directory of the snapshots is gone, as with a disk that was unmounted. Returns the act that ends this. */
async function failSnapshots(): Promise<() => Promise<unknown>> {
  const [, before] = (await redis.admin.config('GET', 'dir')) as [string, string];
  const dir = mkdtempSync(join(tmpdir(), 'godwit-gone-'));
  await config('dir', dir, 'save', '3600 1');
  rmdirSync(dir);
  const isSaved = async (isOk: boolean) => {
    await redis.admin.bgsave().catch(() => undefined);
    return (await redis.admin.info('persistence')).includes(`rdb_last_bgsave_status:${isOk ? 'ok' : 'err'}`);
  };
  await until(() => isSaved(false), PATIENT);
  return async () => {
    await config('dir', before);
    await until(() => isSaved(true), PATIENT);
    await config('save', '');
  };
}

async function wantReplicas(): Promise<() => Promise<unknown>> {
  await config('min-replicas-to-write', '5');
  return () => config('min-replicas-to-write', '0');
}

it('the health indicator and the overview of the dashboard report that writes are refused', async () => {
  const { api, app } = await bootDashboard(redis, {
    imports: [TerminusModule],
    providers: [QueueHealthIndicator],
  });
  const indicator = app.get(QueueHealthIndicator);
  const heal = await wantReplicas();
  const text = 'Redis refuses writes: NOREPLICAS';
  expect(await indicator.check('queues')).toMatchObject({
    queues: { status: 'down', reasons: [expect.stringContaining(text)] },
  });
  expect(await indicator.check('queues', { queues: 'work' })).toMatchObject({ queues: { status: 'down' } });
  const attention = async (): Promise<unknown[]> => (await api('GET', 'overview')).body.attention;
  expect(await attention()).toContainEqual({
    level: 'bad',
    page: 'queues',
    text: expect.stringContaining(text),
  });
  await heal();
  expect(await indicator.check('queues')).toMatchObject({ queues: { status: 'up' } });
});

it.each([
  ['MISCONF', failSnapshots],
  ['NOREPLICAS', wantReplicas],
])(
  'an answer of %s is reported, a run that ends is settled later, and nothing runs twice',
  async (reply, fail) => {
    const gate = latch('the gate');
    atEnd(() => gate.open());
    const runs = new Map<string, number>();
    const run = ({ id, name }: { id: string; name: string }) => {
      runs.set(id, (runs.get(id) ?? 0) + 1);
      return name === 'held' ? gate.promise : undefined;
    };
    const root = { enqueueTimeout: '500ms' };
    const app = await bootQueue(redis, { root, handlers: { '*': run }, watch: false });
    await app.queue.add('held', null, { id: 'held' });
    await until(() => runs.has('held'), PATIENT);
    const heal = await fail();
    const refused = await app.queue.add('job', null, { id: 'refused' }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'GODWIT_REDIS_REFUSED', reply, applied: 'no' });
    gate.open();
    await app.logs.complaint(new RegExp(`^queue 'work': cannot claim or settle jobs now, .*${reply}`));
    const health = await runOn(redis, 'health');
    expect([health.code, health.out]).toEqual([4, expect.stringContaining(reply)]);
    const retried = await runOn(redis, 'pause', 'work');
    expect([retried.code, retried.err]).toEqual([
      1,
      expect.stringMatching(`^godwit: pause: .*${reply}.*\n$`),
    ]);
    expect(app.logs.complaints.filter((text) => text.includes('could not be recorded'))).toEqual([]);
    await heal();
    await app.queue.add('job', null, { id: 'after' });
    await until(isOver(app), PATIENT);
    expect(runs).toEqual(onceEach(['held', 'after']));
    const again = /^queue 'work': claims and settles jobs again, after /;
    await until(() => app.logs.lines.find(({ text }) => again.test(text)), PATIENT);
    expect((await runOn(redis, 'health')).code).toBe(0);
  },
);

it('the refusal of a replica is reported as one, also to calls made together, and breaks no other call', async () => {
  await replica.caughtUp(redis.admin);
  const { url } = replica.server;
  for (let i = 0; i < 5; i++) {
    const producer = createProducer({ connection: url, prefix: redis.prefix, enqueueTimeout: '500ms' });
    const queue = producer.queue('work');
    const [added, counts, paused] = await Promise.allSettled([
      queue.add('job', null),
      queue.counts(),
      queue.pause(),
    ]);
    expect(added).toMatchObject({ status: 'rejected', reason: { reply: 'READONLY', applied: 'no' } });
    expect(counts).toMatchObject({ status: 'fulfilled' });
    expect(paused).toMatchObject({ status: 'rejected', reason: { reply: 'READONLY', applied: 'no' } });
    // It waits for the next connection.
    expect(await queue.counts()).toMatchObject({ waiting: 0 });
    await producer.close();
  }
  expect((await runOn({ url, prefix: redis.prefix }, 'health')).out).toContain('READONLY');
});
