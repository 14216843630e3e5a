import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { startRedis, type RunningRedis } from '../../../tools/redis.mjs';
import { until } from '../../support/wait.js';

interface Replica {
  readonly server: RunningRedis;
  /** A client of the replica itself. */
  readonly client: Redis;
  /** Resolves once it has all data of the primary. */
  caughtUp(primary: Redis): Promise<void>;
  /** It keeps its connections and answers nothing. */
  stop(): void;
  goOn(): void;
}

/** A replica of the spec's server, for the whole file. */
export function useReplica(primary: RunningRedis): Replica {
  let server: RunningRedis;
  let client: Redis;
  const signal = (name: NodeJS.Signals) => void process.kill(server.pid!, name);
  beforeAll(async () => {
    server = await startRedis({ private: true, args: ['--replicaof', `127.0.0.1 ${primary.port}`] });
    client = new Redis(server.url);
  });
  afterAll(async () => {
    signal('SIGCONT');
    await client.quit();
    await server.stop();
  });
  return {
    get server() {
      return server;
    },
    get client() {
      return client;
    },
    caughtUp: async (admin) => {
      const confirmed = async () => {
        // WAIT waits only for writes of its own connection.
        await admin.call('PUBLISH', 'replicated', '');
        return (await admin.wait(1, 200)) >= 1;
      };
      await until(confirmed, { timeout: 20_000, what: 'the replica has everything' });
    },
    stop: () => signal('SIGSTOP'),
    goOn: () => signal('SIGCONT'),
  };
}
