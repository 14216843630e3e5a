import { createHash, randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, type TestContext } from 'vitest';
import type { ProcessRecord } from '#lib/contract/process-verbs.js';
import type { RunningRedis } from '../../tools/redis.mjs';
import { addUser, ownerOf, refusals, type Rights } from './acl-user.js';
import { runCleanup } from './cleanup.js';
import { until } from './wait.js';

export interface UseRedisOptions {
  /**
   * A server of the spec's own, from `useServer()`, that it may kill, stop or reconfigure. There a test has every right
   * and all clients. On the shared server it may touch no keys but its own, flush nothing and configure nothing.
   */
  readonly server?: RunningRedis;
  /**
   * The rights of the user in `url`. A command that the server refuses fails the test, unless `refusals` are expected.
   */
  readonly rights?: Rights;
  /** Whether a test of this spec expects refusals: it takes rights away, or connects elsewhere. */
  readonly refusals?: boolean;
  /** Kinds of keys besides `DATA` that a test of this spec may leave behind: `['active', 'worker', 'workers']`. */
  readonly leaves?: readonly string[];
}

/** Access to Redis for the running test; new for each test. */
export interface TestRedis {
  /** URL for the code under test. Its user has only the rights that the library needs. */
  readonly url: string;
  /** Unique. Prefixes that begin with it, like `${prefix}-b`, also belong to the test. */
  readonly prefix: string;
  /** A client with all rights, open during the whole file. */
  readonly admin: Redis;
  /** Every key that contains the prefix. */
  keys(): Promise<string[]>;
  /** Connections that were opened with `url`, from `CLIENT LIST`. */
  clients(): Promise<ClientInfo[]>;
  /** Deletes every key of the test. For tests that leave more than data on purpose, such as a killed worker. */
  flush(): Promise<void>;
}

type ClientInfo = Readonly<Record<string, string>>;

/**
 * Kinds of keys with jobs, settings or history, and claims that only expire. They may exist when a test ends and are then deleted. A key of any
 * other kind shows that a process did not end in good order, and fails the test.
 */
const DATA: readonly string[] = (
  'jobs wait suspects prioritized grouped limits limitStates lines lineStates ready resting slots shares ' +
  'delayed priorities attempts stalls failures dead completed results progress logs ' +
  'unique cancelled upcoming schedules firings scheduleOrder declaredSets events large largeProgress handled meta doorbell lane stats minutes hosts queues alerts actions bulkActs janitor'
).split(' ');

/** Call it at the top of a spec file or `describe`, outside of tests. Its fields may be read inside tests and hooks. */
export function useRedis(options: UseRedisOptions = {}): TestRedis {
  let admin: Redis;
  let current: { url: string; prefix: string; user: string };

  beforeAll(async () => {
    admin = new Redis(options.server?.url ?? inject('redisUrl'), { connectionName: 'test-admin' });
    // A spec may stop its own server. ioredis then reconnects, and emits this event.
    admin.on('error', () => {});
    // Connect before the first test, which would otherwise be blamed for the open connection.
    await admin.ping();
  });
  afterAll(() => admin.quit().then(() => undefined));

  beforeEach(async (context) => {
    const prefix = uniquePrefix(context);
    if (!options.server) current = { ...(await addUser(admin, prefix, options.rights ?? 'library')), prefix };
    else if (options.rights === 'all') current = { url: options.server.url, prefix, user: 'default' };
    else current = { ...ownerOf(options.server.url), prefix };
  });

  const redis: TestRedis = {
    get url() {
      return current.url;
    },
    get prefix() {
      return current.prefix;
    },
    get admin() {
      return admin;
    },
    keys: () => scan(admin, current.prefix),
    clients: async () => {
      const own = await admin.client('ID');
      return (await clientList(admin)).filter(
        // On a server of its own every client belongs to the test, except replicas.
        ({ user, id, flags }) =>
          (options.server ? !flags!.includes('S') : user === current.user) && id !== String(own),
      );
    },
    flush: async () => {
      const keys = await redis.keys();
      if (keys.length > 0) await admin.unlink(keys);
    },
  };

  afterEach(async () => {
    try {
      await runCleanup();
      await expectNoClients(redis);
      if (!options.leaves?.includes('processes')) await forgetLeavers(admin, await redis.keys());
      expectOnlyData(await redis.keys(), current.prefix, [...DATA, ...(options.leaves ?? [])]);
      if (!options.refusals) expect(await refusals(admin, current.user)).toEqual([]);
    } finally {
      await redis.flush();
      // Deleting the user also ends its connections, so a test that fails here does not disturb the next one.
      if (!options.server) await admin.call('ACL', 'DELUSER', current.user);
    }
  });
  return redis;
}

function uniquePrefix({ task }: Readonly<TestContext>): string {
  const file = basename(task.file.name).replace(/(\.\w+)+$/, '');
  const names: string[] = [];
  for (let at: { name: string; suite?: unknown } | undefined = task; at; at = at.suite as typeof at)
    names.push(at.name);
  const test = createHash('sha1').update(names.join('\n')).digest('hex').slice(0, 8);
  return `${file.replace(/[^A-Za-z0-9._-]/g, '').slice(0, 24)}-${test}-${randomBytes(4).toString('hex')}`;
}

async function scan(admin: Redis, prefix: string): Promise<string[]> {
  const keys = new Set<string>();
  for await (const page of admin.scanStream({ match: `*${prefix}*`, count: 1_000 })) {
    for (const key of page as string[]) keys.add(key);
  }
  return [...keys].toSorted();
}

async function clientList(admin: Redis): Promise<ClientInfo[]> {
  const lines = String(await admin.client('LIST'))
    .trim()
    .split('\n');
  return lines.map((line) =>
    Object.fromEntries(line.split(' ').map((field) => splitAt(field, field.indexOf('=')))),
  );
}

function splitAt(text: string, at: number): [string, string] {
  return [text.slice(0, at), text.slice(at + 1)];
}

/** The server removes a closed connection from its list a moment later. */
async function expectNoClients(redis: TestRedis): Promise<void> {
  let left: ClientInfo[] = [];
  const describe = (client: ClientInfo) =>
    `${client['addr']} name=${client['name']} last command=${client['cmd']}`;
  await until(async () => (left = await redis.clients()).length === 0, {
    timeout: 5_000,
    what: () => `the test closes its connections to Redis, but it left ${left.map(describe).join('; ')}`,
  });
}

/**
 * Deletes the records of processes if all of them say that they were stopping. A stop waits 1.7 s for its last calls, and then leaves its
 * record to the lease. On a busy machine that happens to a process that ends in good order.
 */
async function forgetLeavers(admin: Redis, keys: readonly string[]): Promise<void> {
  for (const key of keys.filter((one) => one.endsWith('}:processes:info'))) {
    const fields = Object.entries(await admin.hgetall(key));
    const records = fields.filter(([field]) => !field.startsWith('orders '));
    const hasLeft = ([, record]: readonly [string, string]) =>
      (JSON.parse(record) as ProcessRecord).state === 'draining';
    if (records.length > 0 && records.every(hasLeft)) await admin.unlink(key, key.replace(/:info$/, ''));
  }
}

/** Throws if a key is not `{prefix…:queue}:kind…` or `{prefix…}:kind…`, or if its kind may not be left behind. */
function expectOnlyData(keys: readonly string[], prefix: string, kinds: readonly string[]): void {
  const unexpected = keys.filter((key) => {
    // The queue without a name has what belongs to no queue.
    const found = /^\{([^:{}]*)(?::[^{}]*)?\}:([a-zA-Z]+)(:.*)?$/s.exec(key);
    return !found || !found[1]!.startsWith(prefix) || !kinds.includes(found[2]!);
  });
  if (unexpected.length === 0) return;
  throw new Error(
    `the test left keys that are no data of a queue: ${unexpected.join(', ')}; end what wrote them in good order, ` +
      `or call redis.flush() where the test leaves them on purpose`,
  );
}
