import { Command } from 'ioredis';
import { setTimeout as pause } from 'node:timers/promises';
import { ask, until as asked } from '../../tools/redis/ask.mjs';
import { startCluster, type RunningCluster } from '../../tools/redis/cluster.mjs';
import { atEnd } from '../support/cleanup.js';
import { until } from '../support/wait.js';
import type { Account } from './history.js';
import { Load, type Finish } from './load.js';

const PREFIX = 'failover';
const MASTERS = 3;
const AFTER_MS = 2_000;

const slotOf = (queue: string) => new Command('get', [`{${PREFIX}:${queue}}:meta`]).getSlot();

/** A queue name with this beginning whose keys are on this master of a fresh cluster. */
function nameOn(master: number, begin: string): string {
  for (let i = 0; ; i++) {
    const name = `${begin}-${i}`;
    if (Math.floor(slotOf(name) / Math.ceil(16_384 / MASTERS)) === master) return name;
  }
}

export interface ClusterFault {
  /** From the fault until the affected queue stores adds and runs jobs again. */
  readonly resumedMs: number;
  /** Per queue; the first two were affected, the others were not. */
  readonly local: Account;
  readonly replicated: Account;
  readonly elsewhere: Account;
  readonly finish: Finish;
}

interface Scene {
  readonly cluster: RunningCluster;
  readonly load: Load;
  readonly local: string;
}

async function underLoad(
  perSecond: number,
  strike: (scene: Scene) => Promise<{ struckAt: number; again: number }>,
): Promise<ClusterFault> {
  const cluster = await startCluster();
  atEnd(() => cluster.stop());
  const [local, replicated, elsewhere] = [
    nameOn(0, 'local'),
    nameOn(0, 'replicated'),
    nameOn(1, 'elsewhere'),
  ];
  const load = await Load.start({
    root: { connection: { cluster: cluster.urls.slice(1, 3) }, prefix: PREFIX },
    queues: [{ name: local }, { name: replicated, durability: 'replicated' }, { name: elsewhere }],
    perSecond,
  });
  const { struckAt, again } = await strike({ cluster, load, local });
  const back = await until(() => load.history().resumedAt(local, again), {
    timeout: 60_000,
    what: 'work goes on',
  });
  await until(() => Date.now() - back > AFTER_MS, { timeout: AFTER_MS * 2 });
  const finish = await load.finish();
  const history = load.history();
  return {
    resumedMs: back - struckAt,
    local: history.account(local),
    replicated: history.account(replicated),
    elsewhere: history.account(elsewhere),
    finish,
  };
}

/** A master dies under load, and its replica takes over. */
export function nodeKilled(): Promise<ClusterFault> {
  return underLoad(200, async ({ cluster, load, local }) => {
    const master = cluster.nodes[0]!;
    const struckAt = Date.now();
    await master.kill9();
    await until(() => load.history().resumedAt(local, struckAt), { timeout: 60_000, what: 'work goes on' });
    // It comes back as a replica, so that adds can be confirmed again.
    await master.restart();
    return { struckAt, again: struckAt };
  });
}

/**
 * Moves the slot of a queue to another master under load, key by key in random order. For `haltMs` some keys have moved
 * and some have not.
 */
export function slotMoved(haltMs: number): Promise<ClusterFault> {
  return underLoad(100, async ({ cluster, local }) => {
    const struckAt = Date.now();
    await moveSlot(cluster, slotOf(local), 2, haltMs);
    return { struckAt, again: Date.now() };
  });
}

async function moveSlot(cluster: RunningCluster, slot: number, to: number, haltMs: number): Promise<void> {
  const source = await cluster.ownerOf(slot);
  const target = cluster.nodes[to]!;
  const targetId = await ask(target.port, 'CLUSTER MYID');
  await ask(target.port, `CLUSTER SETSLOT ${slot} IMPORTING ${source.id}`);
  await ask(source.node.port, `CLUSTER SETSLOT ${slot} MIGRATING ${targetId}`);
  const halfway = Math.ceil((await keysIn(source.node.port, slot)).length / 2);
  for (let moved = 0; ; moved++) {
    const keys = await keysIn(source.node.port, slot);
    if (keys.length === 0) break;
    if (moved === halfway) await pause(haltMs);
    const key = keys[Math.floor(Math.random() * keys.length)]!;
    await ask(source.node.port, `MIGRATE 127.0.0.1 ${target.port} ${key} 0 5000`);
  }
  for (const node of [target, source.node, ...cluster.nodes.slice(0, MASTERS)]) {
    await ask(node.port, `CLUSTER SETSLOT ${slot} NODE ${targetId}`);
  }
  await asked(async () => (await cluster.ownerOf(slot)).id === targetId, 'the slot has its new owner');
}

async function keysIn(port: number, slot: number): Promise<string[]> {
  const reply = await ask(port, `CLUSTER GETKEYSINSLOT ${slot} 10000`);
  return reply.split('\r\n').filter((line) => line.startsWith('{'));
}
