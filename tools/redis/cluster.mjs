import { freePort } from '../free-port.mjs';
import { startRedis } from '../redis.mjs';
import { ask, until } from './ask.mjs';
import { onFreePorts } from './process.mjs';

const SLOTS = 16_384;

/**
 * A Redis Cluster on loopback: `masters` masters with one replica each, which serve all slots. A failover
 * takes about `nodeTimeoutMs`. `stop()` or the end of this program ends all nodes.
 */
export async function startCluster({ masters = 3, nodeTimeoutMs = 2_000, args = [], tls } = {}) {
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)];
  // A replica that was disconnected for a moment may be promoted too, because there is no other.
  settings.push('--cluster-replica-validity-factor', '0');
  const starts = Array.from({ length: masters * 2 }, () =>
    onFreePorts(() => startNode([...settings, ...args], tls)),
  );
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

/** With `tls`, the nodes use a second port to talk to each other. The first port is for clients without TLS. */
async function startNode(args, tls) {
  // By default the port of the cluster bus is 10,000 above the port of the node, in the range of outgoing
  // connections. A node that tries to reach a stopped node could then connect to itself, and not notice that
  // the other one is down.
  const busPort = await freePort();
  const more = ['--cluster-port', String(busPort)];
  const tlsPort = tls && (await freePort());
  if (tls)
    more.push('--tls-port', String(tlsPort), '--tls-cluster', 'yes', '--tls-replication', 'yes', ...tls);
  const node = await startRedis({ private: true, args: [...args, ...more] });
  return Object.assign(node, { busPort, tlsPort });
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
      // Otherwise two nodes that have never met may have the same epoch for a while.
      await ask(this.nodes[i].port, `CLUSTER SET-CONFIG-EPOCH ${i + 1}`);
    }
    for (const { port, tlsPort = port, busPort } of this.nodes.slice(1)) {
      await ask(first.port, `CLUSTER MEET 127.0.0.1 ${tlsPort} ${busPort}`);
    }
    await this.agreed((info) => info.includes(`cluster_known_nodes:${this.nodes.length}\r\n`));
    for (let i = masters; i < this.nodes.length; i++) {
      const id = await ask(this.nodes[i - masters].port, 'CLUSTER MYID');
      await until(() => ask(this.nodes[i].port, `CLUSTER REPLICATE ${id}`), 'a node becomes a replica');
    }
    await this.healthy();
    for (const { port } of this.nodes) {
      const replicas = async () => (await ask(port, 'CLUSTER NODES')).split(/ (?:myself,)?slave /).length - 1;
      await until(async () => (await replicas()) === masters, 'every node knows every replica');
    }
  }

  /** Resolves when every running node sees all slots served, and every replica follows its master. */
  async healthy(nodes = this.nodes) {
    await this.agreed((info) => info.includes('cluster_state:ok\r\n'), nodes);
    for (const { port } of nodes) {
      await until(async () => {
        const info = await ask(port, 'INFO replication');
        return info.includes('role:master') || info.includes('master_link_status:up');
      }, 'every replica follows its master');
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
        const found = this.nodes.find((node) =>
          address.startsWith(`127.0.0.1:${node.tlsPort ?? node.port}@`),
        );
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
    }, 'the nodes of the cluster agree');
  }
}
