import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../free-port.mjs';
import { startRedis } from '../redis.mjs';
import { ask, until } from './ask.mjs';
import { findServer } from './binary.mjs';
import { launch, onFreePorts } from './process.mjs';

const NAME = 'mymaster';
const SENTINELS = 3;

/**
 * A primary with a replica and three sentinels that watch them, on loopback. The sentinels replace a primary
 * that does not answer for `downAfterMs`. `stop()` or the end of this program ends all servers.
 */
export async function startSentinel({ downAfterMs = 1_000, args = [] } = {}) {
  const servers = [];
  const sentinels = [];
  const running = new RunningSentinel(servers, sentinels);
  try {
    servers.push(await startRedis({ private: true, args }));
    const follow = ['--replicaof', '127.0.0.1', String(servers[0].port)];
    servers.push(await startRedis({ private: true, args: [...args, ...follow] }));
    for (let i = 0; i < SENTINELS; i++) {
      sentinels.push(await onFreePorts(() => startOne(servers[0].port, downAfterMs)));
    }
    await running.healthy();
    return running;
  } catch (error) {
    await running.stop();
    throw error;
  }
}

async function startOne(primary, downAfterMs) {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'godwit-sentinel-'));
  // Sentinels write their state into their configuration.
  const conf = join(dir, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor ${NAME} 127.0.0.1 ${primary} 2`,
    `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
    `sentinel failover-timeout ${NAME} 5000`,
  ];
  writeFileSync(conf, `${lines.join('\n')}\n`);
  const binary = findServer({ forTests: true });
  const log = join(dir, 'redis.log');
  try {
    const process = await launch({ binary, args: [conf, '--sentinel'], port, dir, orphanDir: dir, log });
    return { port, process, dir };
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

class RunningSentinel {
  name = NAME;

  constructor(servers, sentinels) {
    this.servers = servers;
    this.sentinels = sentinels;
  }

  get connection() {
    return { name: NAME, sentinels: this.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })) };
  }

  /** The server that the sentinels name as primary, and the other server. */
  async roles() {
    const reply = await ask(this.sentinels[0].port, `SENTINEL GET-MASTER-ADDR-BY-NAME ${NAME}`);
    const primary = this.servers.find(({ port }) => reply.includes(`\r\n${port}`));
    if (!primary) throw new Error(`the sentinels name another server: ${reply}`);
    return { primary, replica: this.servers.find((server) => server !== primary) };
  }

  /**
   * Resolves when the replica follows the primary, and the sentinels know each other and could replace the
   * primary.
   */
  async healthy() {
    await until(async () => {
      const { primary, replica } = await this.roles();
      const [one, two] = await Promise.all(
        [primary, replica].map(({ port }) => ask(port, 'INFO replication')),
      );
      return (
        one.includes('role:master') && two.includes('role:slave') && two.includes('master_link_status:up')
      );
    }, 'the replica follows the primary');
    for (const { port } of this.sentinels) {
      await until(async () => {
        const text = await ask(port, `SENTINEL MASTER ${NAME}`);
        const [, flags] = /\r\nflags\r\n\$\d+\r\n(\S+)/.exec(text);
        const [, others] = /\r\nnum-other-sentinels\r\n\$\d+\r\n(\d+)/.exec(text);
        const [, replicas] = /\r\nnum-slaves\r\n\$\d+\r\n(\d+)/.exec(text);
        if (flags !== 'master' || Number(others) < SENTINELS - 1 || Number(replicas) < 1) return false;
        const known = await ask(port, `SENTINEL REPLICAS ${NAME}`);
        return /\r\nflags\r\n\$\d+\r\nslave\r\n/.test(known);
      }, 'the sentinels watch');
    }
  }

  /** A planned failover. Resolves when the sentinels name the other server as primary. */
  async failover() {
    const { primary } = await this.roles();
    await until(
      () => ask(this.sentinels[0].port, `SENTINEL FAILOVER ${NAME}`),
      'the sentinels begin a failover',
    );
    await this.switched(primary);
  }

  /** Resolves when the sentinels name another primary than this server. */
  async switched(primary) {
    await until(async () => (await this.roles()).primary !== primary, 'the sentinels name another server');
  }

  async stop() {
    await Promise.all(this.sentinels.map(({ process }) => process.end('SIGKILL')));
    for (const { dir } of this.sentinels) rmSync(dir, { recursive: true, force: true });
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}
