import { createConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { startRedis } from '../redis.mjs';

const SLOTS = 16_384;
const START_TIMEOUT_MS = 30_000;

/**
 * A Redis Cluster on loopback: `masters` masters with one replica each, all slots served. Failover takes about
 * `nodeTimeoutMs`. Everything ends with `stop()`, or with this program.
 */
export async function startCluster({ masters = 3, nodeTimeoutMs = 2_000, args = [] } = {}) {
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)];
  // A replica that has been cut off for a moment may be promoted all the same: there is no other.
  settings.push('--cluster-replica-validity-factor', '0');
  const starts = Array.from({ length: masters * 2 }, () => startNode([...settings, ...args]));
  const started = await Promise.allSettled(starts);
  const nodes = started.filter(({ status }) => status === 'fulfilled').map(({ value }) => value);
  const cluster = new RunningCluster(nodes);
  try {
    const failed = started.find(({ status }) => status === 'rejected');
    if (failed) throw failed.reason;
    await cluster.form(masters);
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** The bus of a node listens at its port + 10,000, so it has to stay below 55,535, as our ports do. */
function startNode(args) {
  return startRedis({ private: true, args });
}

class RunningCluster {
  constructor(nodes) {
    this.nodes = nodes;
  }

  get urls() {
    return this.nodes.map(({ url }) => url);
  }

  async form(masters) {
    const [first] = this.nodes;
    const each = Math.ceil(SLOTS / masters);
    for (let i = 0; i < masters; i++) {
      const last = Math.min(SLOTS, (i + 1) * each) - 1;
      await ask(this.nodes[i].port, `CLUSTER ADDSLOTSRANGE ${i * each} ${last}`);
      // Else two nodes that have never met may hold the same epoch for a while.
      await ask(this.nodes[i].port, `CLUSTER SET-CONFIG-EPOCH ${i + 1}`);
    }
    for (const { port } of this.nodes.slice(1)) await ask(first.port, `CLUSTER MEET 127.0.0.1 ${port}`);
    await this.agreed((info) => info.includes(`cluster_known_nodes:${this.nodes.length}\r\n`));
    for (let i = masters; i < this.nodes.length; i++) {
      const id = await ask(this.nodes[i - masters].port, 'CLUSTER MYID');
      await retry(() => ask(this.nodes[i].port, `CLUSTER REPLICATE ${id}`));
    }
    await this.healthy();
  }

  /** Resolves once every running node sees all slots served, and every replica follows its master. */
  async healthy(nodes = this.nodes) {
    await this.agreed((info) => info.includes('cluster_state:ok\r\n'), nodes);
    for (const { port } of nodes) {
      await until(async () => {
        const info = await ask(port, 'INFO replication');
        return info.includes('role:master') || info.includes('master_link_status:up');
      });
    }
  }

  /** The node that owns a slot, as the others see it. */
  async ownerOf(slot) {
    for (const { port } of this.nodes) {
      const lines = await ask(port, 'CLUSTER NODES').catch(() => '');
      for (const line of lines.split('\n')) {
        const [id, address, flags, , , , , , ...ranges] = line.split(' ');
        if (!flags?.includes('master') || flags.includes('fail')) continue;
        const owns = ranges.some((range) => {
          const [from, to = from] = range.split('-').map(Number);
          return from <= slot && slot <= to;
        });
        if (!owns) continue;
        const found = this.nodes.find((node) => address.startsWith(`127.0.0.1:${node.port}@`));
        if (found) return { node: found, id };
      }
    }
    throw new Error(`no node owns slot ${slot}`);
  }

  async stop() {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async agreed(match, nodes = this.nodes) {
    await until(async () => {
      const infos = await Promise.all(nodes.map(({ port }) => ask(port, 'CLUSTER INFO')));
      return infos.every(match);
    });
  }
}

async function retry(act) {
  let answer;
  await until(async () => {
    answer = await act();
    return true;
  });
  return answer;
}

async function until(predicate) {
  const deadline = Date.now() + START_TIMEOUT_MS;
  let last;
  while (Date.now() < deadline) {
    try {
      if (await predicate()) return;
    } catch (error) {
      last = error;
    }
    await pause(50);
  }
  throw new Error('the cluster did not come up in time', { cause: last });
}

/** One command, its reply as text; an error reply rejects. Without a client, whose connections would be ours to count. */
export function ask(port, command) {
  return new Promise((resolve, reject) => {
    let reply = '';
    const socket = createConnection({ host: '127.0.0.1', port, timeout: 2_000 });
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.end(`${command}\r\n`));
    socket.on('data', (text) => (reply += text));
    socket.on('timeout', () => socket.destroy(new Error(`${command}: no answer from port ${port}`)));
    socket.on('error', reject);
    socket.on('close', () => {
      if (reply.startsWith('-') || reply === '') reject(new Error(`${command}: ${reply || 'no answer'}`));
      else resolve(reply.replace(/^\$\d+\r\n/, '').replace(/^\+/, '').replace(/\r\n$/, ''));
    });
  });
}
