import { randomBytes } from 'node:crypto';
import { Command } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { ConnectionOption } from '#lib/options/connection.js';
import { startCluster, type RunningCluster, type StartClusterOptions } from '../../tools/redis/cluster.mjs';

interface TestCluster {
  readonly running: RunningCluster;
  /** For the code under test. */
  readonly connection: Extract<ConnectionOption, { cluster: unknown }>;
  /** A new prefix for each test. */
  readonly prefix: string;
  /** One queue name per master, in the order of `running.nodes`. */
  queuePerMaster(): readonly string[];
  /** The slot of the keys of a queue. */
  slotOf(queue: string): number;
  /** The slot of the keys of the prefix: its processes, and the list of its queues. */
  slotOfProcesses(): number;
}

const MASTERS = 3;

const masterOf = (slot: number) => Math.floor(slot / Math.ceil(16_384 / MASTERS));

interface Options extends StartClusterOptions {
  /** The node with the processes and the list of queues also has the shared limits. By default it may or may not. */
  readonly limitsAreWithProcesses?: boolean;
}

/** A Redis Cluster for one spec file. Call it at the top of the file. */
export function useCluster({ limitsAreWithProcesses, ...options }: Options = {}): TestCluster {
  let running: RunningCluster;
  let prefix: string;
  beforeAll(async () => {
    running = await startCluster({ ...options, masters: MASTERS });
  });
  afterAll(() => running.stop());
  const slotOf = (queue: string) => new Command('get', [`{${prefix}:${queue}}:meta`]).getSlot();
  const slotOfProcesses = () => new Command('get', [`{${prefix}}:processes`]).getSlot();
  beforeEach(() => {
    do prefix = `test-${randomBytes(4).toString('hex')}`;
    while (limitsAreWithProcesses && masterOf(slotOf('')) !== masterOf(slotOfProcesses()));
  });
  return {
    get running() {
      return running;
    },
    get connection() {
      return { cluster: running.urls.slice(0, MASTERS) };
    },
    get prefix() {
      return prefix;
    },
    slotOf,
    slotOfProcesses,
    queuePerMaster: () =>
      Array.from({ length: MASTERS }, (_, master) => {
        for (let i = 0; ; i++) {
          const name = `queue-${i}`;
          if (masterOf(slotOf(name)) === master) return name;
        }
      }),
  };
}
