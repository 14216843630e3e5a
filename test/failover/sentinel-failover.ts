import { Redis } from 'ioredis';
import { startSentinel, type RunningSentinel } from '../../tools/redis/sentinel.mjs';
import { atEnd } from '../support/cleanup.js';
import { until } from '../support/wait.js';
import type { Account } from './history.js';
import { Load, TENANT_COUNT, TENANTS, type Finish } from './load.js';

/** How the primary fails. */
export type Blow = 'planned' | 'killed' | 'stopped';

export interface Failover {
  /** From the moment the sentinels name another primary until jobs are stored and run there; 0 if that was before. */
  readonly resumedMs: number;
  /** From the fault to the switch. */
  readonly switchedMs: number;
  readonly local: Account;
  readonly replicated: Account;
  /** Of the queue with groups, keys and limits. */
  readonly tenants: Account;
  /** Runs of one group at once, of those that began after work has resumed. */
  readonly mostOfGroup: number;
  readonly finish: Finish;
}

/** How long the load goes on after work has resumed. */
const AFTER_MS = 2_000;
/** The queues whose adds wait for a replica. */
const CONFIRMED = ['replicated', 'tenants'];

/** A failover by Sentinel under load of adds and work, on servers of its own. */
export async function sentinelFailover(blow: Blow): Promise<Failover> {
  // A primary that comes back without its data may be chosen again before it has copied the data; then the data is
  // lost.
  const sentinel = await startSentinel({ args: ['--appendonly', 'yes'] });
  atEnd(() => sentinel.stop());
  const { primary } = await sentinel.roles();
  const switches = await watchSwitches(sentinel);
  const load = await Load.start({
    root: { connection: sentinel.connection },
    queues: [{ name: 'local' }, { name: 'replicated', durability: 'replicated' }, TENANTS],
  });

  const struckAt = Date.now();
  if (blow === 'killed') await primary.kill9();
  if (blow === 'stopped') process.kill(primary.pid!, 'SIGSTOP');
  if (blow === 'planned') await sentinel.failover();
  const switchedAt = await until(() => switches.at(-1), { timeout: 30_000, what: 'a failover' });
  // Before it reconnects, it may still be served by the old primary.
  const back = await until(
    () => {
      const history = load.history();
      const up = history.upAt('command') ?? 0;
      return up > struckAt && history.resumedAt('local', up);
    },
    { timeout: 30_000, what: 'work goes on' },
  );

  // The old primary comes back and becomes a replica, so that adds can be confirmed again.
  if (blow === 'stopped') process.kill(primary.pid!, 'SIGCONT');
  if (blow === 'killed') await primary.restart();
  const goneOn = await until(
    () => {
      const on = CONFIRMED.map((queue) => load.history().resumedAt(queue, switchedAt));
      return on.every((at) => at !== undefined) && Math.max(...on);
    },
    { timeout: 40_000, what: 'replicated adds go on' },
  );
  await until(() => Date.now() - back > AFTER_MS, { timeout: AFTER_MS * 2 });
  const finish = await load.finish();
  const history = load.history();
  return {
    resumedMs: Math.max(0, back - switchedAt),
    switchedMs: switchedAt - struckAt,
    local: history.account('local'),
    replicated: history.account('replicated'),
    tenants: history.account('tenants'),
    mostOfGroup: history.mostOfGroup('tenants', (made) => made % TENANT_COUNT, Math.max(back, goneOn)),
    finish,
  };
}

/** When a sentinel named a new primary. */
async function watchSwitches({ sentinels }: RunningSentinel): Promise<readonly number[]> {
  const moments: number[] = [];
  for (const { port } of sentinels) {
    const client = new Redis(port, '127.0.0.1', { lazyConnect: true });
    client.on('error', () => undefined);
    client.on('message', () => moments.push(Date.now()));
    atEnd(() => client.disconnect());
    await client.connect();
    await client.subscribe('+switch-master');
  }
  return moments;
}
