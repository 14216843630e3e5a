import { expect, it } from 'vitest';
import { ask } from '../../tools/redis/ask.mjs';
import { useCluster } from '../support/cluster.js';
import { atEnd } from '../support/cleanup.js';
import { startCut } from '../support/cut.js';
import { bootWorking } from '../faults/support/app.js';
import { leaseMs, renewed } from '../faults/support/beating.js';
import { PATIENT } from '../support/queue-app.js';
import { latch, until } from '../support/wait.js';

const cluster = useCluster();
/** From the moment connections go silent until work goes on. */
const MAX_MS = 10_000;

/** An application that reaches the first master, which owns its queue, through a line that can be broken. */
async function bootBehindCut() {
  const [master] = cluster.running.nodes;
  const cut = await startCut(master!.url);
  const queue = cluster.queuePerMaster()[0]!;
  const natMap = { [`127.0.0.1:${master!.port}`]: { host: '127.0.0.1', port: cut.port } };
  const pinged = [latch('the first job'), latch('the second job')];
  const found = (role: string) => cut.carrying(`godwit:${cluster.prefix}:${role}`, { timeout: 15_000 });
  const finding = Promise.all([found('command'), found('blocking'), found('heartbeat')]);
  const root = { connection: { ...cluster.connection, natMap }, prefix: cluster.prefix };
  const app = await bootWorking(root, (job) => pinged[Number(job.data)]!.open(), { queue });
  const [command, blocking, heartbeat] = await finding;
  await app.queue.add('ping', 0);
  await pinged[0]!.wait(PATIENT);
  // All it knows of is done, so it sleeps, and only its blocking connection can wake it.
  await until(async () => (await ask(master!.port, 'CLIENT LIST')).includes('cmd=bzpopmin'));
  const secondsToRun = async () => {
    const since = performance.now();
    await Promise.all([app.queue.add('ping', 1), pinged[1]!.wait({ timeout: MAX_MS })]);
    return (performance.now() - since) / 1000;
  };
  return { ...app, cut, connections: { command, blocking, heartbeat }, secondsToRun };
}

type Role = 'command' | 'blocking';

it.each<[string, Role[]]>([
  ['the command connection', ['command']],
  ['the blocking connection of the queue', ['blocking']],
  ['both', ['command', 'blocking']],
])('works again soon after %s to one master went silent, and logs it', async (_, roles) => {
  const { connections, links, secondsToRun, runs } = await bootBehindCut();
  for (const role of roles) connections[role].blackhole();
  expect(await secondsToRun()).toBeLessThan(MAX_MS / 1000);
  for (const role of roles) {
    const text = `the ${role} connection went silent and was cut`;
    await until(() => links.some((link) => link.role === role && link.error?.message === text), {
      timeout: MAX_MS,
    });
  }
  expect([...runs.values()]).toEqual([1, 1]);
});

it('closes while a master is silent', async () => {
  const { cut, close } = await bootBehindCut();
  cut.blackhole();
  const since = performance.now();
  await close();
  expect(performance.now() - since).toBeLessThan(MAX_MS);
});

it('keeps the lease of a running job by the thread, at the master that owns it', async () => {
  for (const queue of cluster.queuePerMaster()) {
    const end = latch('the end of the job');
    atEnd(() => end.open());
    const lease = { duration: '1s' };
    const root = { connection: cluster.connection, prefix: cluster.prefix, lease };
    const { engine, queue: handle, close } = await bootWorking(root, () => end.promise, { queue });
    await handle.add('long', null);
    await renewed(engine, queue);
    // The event loop stands still: only the thread can renew it.
    for (const until = performance.now() + 2_500; performance.now() < until;);
    expect(await leaseMs(engine, queue)).toBeGreaterThan(0);
    end.open();
    await close();
  }
});
