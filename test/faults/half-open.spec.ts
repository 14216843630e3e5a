import { expect, it } from 'vitest';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import { latch, until } from '../support/wait.js';
import { isBlocked } from '../support/blocked.js';
import { atEnd } from '../support/cleanup.js';
import { startCut } from '../support/cut.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { bootWorking, drained } from './support/app.js';

const redis = useRedis();
/** From the moment a connection goes silent until work goes on. */
const MAX_MS = 10_000;
/** How long an answer may take before the connection counts as silent. It is longer than what a short lease allows. */
const CALL_MS = 2_000;

type Role = 'command' | 'blocking' | 'heartbeat';

/** An application whose connections can go silent one by one. They are known by the names that the library sets. */
async function bootBehindCut(run?: Parameters<typeof bootWorking>[1], root: QueueModuleOptions = {}) {
  const cut = await startCut(redis.url);
  const found = (role: Role) => cut.carrying(`godwit:${redis.prefix}:${role}`, { timeout: 15_000 });
  const finding = Promise.all([found('command'), found('blocking'), found('heartbeat')]);
  const app = await bootWorking({ ...root, connection: cut.url, prefix: redis.prefix }, (job) => {
    if (job.name === 'ping') pinged[Number(job.data)]!.open();
    return job.name === 'ping' ? undefined : run?.(job);
  });
  const [command, blocking, heartbeat] = await finding;
  const connections = { command, blocking, heartbeat };
  const pinged = [latch('the first job'), latch('the second job')];
  await app.queue.add('ping', 0);
  await pinged[0]!.wait(PATIENT);
  // Once all jobs are done the worker sleeps. Only its blocking connection can wake it.
  await drained(app);
  await isBlocked(redis);

  /** How long it takes until a job that is added now runs. */
  const secondsToRun = async () => {
    const since = performance.now();
    await Promise.all([app.queue.add('ping', 1), pinged[1]!.wait({ timeout: MAX_MS })]);
    return (performance.now() - since) / 1000;
  };
  const troubles = (role: Role) => app.links.filter((link) => link.role === role && link.error);
  return { ...app, cut, connections, secondsToRun, troubles };
}

it.each<[string, Role[]]>([
  ['the command connection', ['command']],
  ['the blocking connection', ['blocking']],
  ['every connection', ['command', 'blocking', 'heartbeat']],
])('works again soon after %s went silent, and logs it', async (_, roles) => {
  const { connections, secondsToRun, troubles, runs } = await bootBehindCut();
  for (const role of roles) connections[role].blackhole();
  const seconds = await secondsToRun();
  expect(seconds).toBeLessThan(MAX_MS / 1000);
  for (const role of roles.filter((one) => one !== 'heartbeat')) {
    const text = `the ${role} connection went silent and was cut`;
    await until(() => troubles(role).some(({ error }) => error!.message === text), PATIENT);
  }
  expect([...runs.values()]).toEqual([1, 1]);
});

it('keeps the lease of a running job although the heartbeat connection goes silent', async () => {
  const end = latch('the end of the job');
  const { connections, cut, queue, troubles, runs } = await bootBehindCut(() => end.promise);
  atEnd(() => end.open());
  const leaseEnd = async () => {
    const [, ms] = await redis.admin.zrange(`{${redis.prefix}:work}:workers`, '0', '0', 'WITHSCORES');
    return Number(ms ?? 0);
  };
  const { id } = await queue.add('long', null);
  await until(leaseEnd);
  connections.heartbeat.blackhole();
  await cut.carrying(`godwit:${redis.prefix}:heartbeat`, { timeout: MAX_MS });
  // The thread reports by message, not by its new connection.
  await until(() => troubles('heartbeat').length > 0, PATIENT);
  // The lease is renewed long before it would end.
  const before = await leaseEnd();
  await until(async () => (await leaseEnd()) > before);
  end.open();
  expect(runs.get(id)).toBe(1);
});

it('notices sooner that the heartbeat connection went silent if the lease is short', async () => {
  const end = latch('the end of the job');
  const lease = { duration: 1_200 };
  const { connections, queue, engine, troubles } = await bootBehindCut(() => end.promise, { lease });
  atEnd(() => end.open());
  await queue.add('long', null);
  await until(async () => (await engine.overdue('work', 60_000)).length > 0);
  // The connection is open and has sent a beat. A connection that is still being set up gets more time.
  await until(async () =>
    (await redis.clients()).some(({ name, cmd }) => name?.endsWith(':heartbeat') && cmd === 'evalsha'),
  );
  connections.heartbeat.blackhole();
  const since = performance.now();
  await until(() => troubles('heartbeat').length > 0);
  expect(performance.now() - since).toBeLessThan(CALL_MS);
});

it('gives up a new connection that goes silent before it is ready', async () => {
  const { cut, secondsToRun, troubles, runs } = await bootBehindCut();
  const next = cut.carrying(`godwit:${redis.prefix}:command`, PATIENT);
  cut.drop();
  (await next).blackhole();
  await secondsToRun();
  expect(troubles('command').map(({ error }) => error!.message)).toContain(
    'the command connection went silent while it was set up and was cut',
  );
  expect([...runs.values()]).toEqual([1, 1]);
});

it('closes while every connection is silent', async () => {
  const { cut, close } = await bootBehindCut();
  cut.blackhole();
  const since = performance.now();
  await close();
  expect(performance.now() - since).toBeLessThan(MAX_MS);
  // The process could not remove its record. Redis removes it after ten minutes.
  await redis.flush();
});
