import { Redis, SentinelConnector, type Cluster, type ClusterOptions, type RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../../errors.js';
import { refuseKeyPrefix, type ClusterConnection, type RedisConnection } from '../../options/connection.js';
import type { Address } from '../cluster/slot-map.js';
import type { LinkEvent, QueueLimits } from '../../contract/engine.js';
import { retryDelay } from '../../contract/retry.js';

interface Connecting {
  connectToSentinel(sentinel: object, options?: RedisOptions): Redis;
}

/**
 * Finds the primary. ioredis does not handle the errors of its connections to sentinels, so Node prints them. One sentinel that
 * is down is not an error: the client itself reports if it can reach none.
 */
class Sentinels extends SentinelConnector {
  constructor(...args: ConstructorParameters<typeof SentinelConnector>) {
    super(...args);
    const self = this as unknown as Connecting;
    const connect = self.connectToSentinel.bind(this);
    const { disconnectTimeout } = DEFAULTS;
    // Otherwise a timer of ioredis keeps the process alive for 2 s after each try of a sentinel that is down.
    self.connectToSentinel = (sentinel, options) =>
      connect(sentinel, { disconnectTimeout, ...options }).on('error', () => undefined);
  }
}

const SENTINELS = Sentinels as unknown as NonNullable<RedisOptions['Connector']>;

export type ClientRole = LinkEvent['role'];

/** Runs work of ours so that it is in no trace of the application. */
export type Internal = <T>(work: () => T) => T;

/**
 * Options that override those of the user. With them ioredis neither queues nor resends commands, because a script whose reply
 * was lost would run twice. The callers repeat calls by number instead.
 */
const OURS = {
  lazyConnect: true,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  enableReadyCheck: true,
} as const satisfies RedisOptions;

const DEFAULTS = {
  retryStrategy: retryDelay,
  connectTimeout: 5000,
  maxLoadingRetryTime: 500,
  keepAlive: 10_000,
  failoverDetector: true,
  // A connection that has failed is replaced. A silent server must not delay that.
  disconnectTimeout: 20,
  // Without it ioredis waits forever for a silent sentinel.
  sentinelCommandTimeout: 1000,
} as const satisfies RedisOptions;

/** No event says when there is a primary again, so the sentinels are asked often. */
const askOften = (tries: number) => Math.min(retryDelay(tries), 200);

const PATH = 'forRoot().connection';

/** How to find the nodes of a cluster and connect to them. */
export interface ClusterPlan {
  readonly seeds: readonly Address[];
  /** The address at which to connect to the node with this announced address. */
  reach(address: Address): Address;
  /** Creates a client for this node only. Without `comesBack` it ends when its first socket closes. */
  makeNode(address: Address, role: ClientRole, comesBack: boolean): Redis;
}

/** Creates the clients of one process from the `connection` option. */
export class Clients {
  private plan: ClusterPlan | null | undefined;
  /** The client that a factory returned to show whether it creates cluster clients. It is the first to be used. */
  private sample: Redis | null = null;

  constructor(
    private readonly connection: RedisConnection,
    private readonly prefix: string,
  ) {}

  /** Null if the connection is not to a cluster. */
  get cluster(): ClusterPlan | null {
    if (this.plan === undefined) this.plan = this.findPlan();
    return this.plan;
  }

  make(role: ClientRole): Redis {
    const { connection } = this;
    if (typeof connection === 'function') return this.fromFactory(role);
    const name = this.named(role);
    if (typeof connection === 'string') return new Redis(connection, { ...DEFAULTS, ...name, ...OURS });
    const { url, ...options } = connection as RedisOptions & { url?: string };
    const finding = options.sentinels ? { Connector: SENTINELS, retryStrategy: askOften } : {};
    const merged: RedisOptions = { ...DEFAULTS, ...finding, ...name, ...options, ...OURS };
    return url === undefined ? new Redis(merged) : new Redis(url, merged);
  }

  /** Closes a client that a factory returned and nobody used. */
  close(): void {
    this.sample?.disconnect();
    this.sample = null;
  }

  private named(role: ClientRole): { connectionName: string } {
    return { connectionName: `godwit:${this.prefix}:${role}` };
  }

  private findPlan(): ClusterPlan | null {
    const { connection } = this;
    if (typeof connection === 'function') {
      const client = ask(connection, 'command');
      // A client that connects at once may emit errors before anybody else listens.
      client.on('error', () => undefined);
      if (!client.isCluster) {
        this.sample = client as Redis;
        // A factory that returns the same client again is refused now, and not only when a second connection is needed.
        const second = ask(connection, 'blocking');
        second.on('error', () => undefined);
        second.disconnect();
        return null;
      }
      client.disconnect();
      const { startupNodes, options } = client as unknown as Pick<Cluster, 'options'> & {
        startupNodes: unknown[];
      };
      return this.planOf(startupNodes, options.redisOptions, options.natMap);
    }
    if (typeof connection !== 'object' || !('cluster' in connection)) return null;
    const { cluster, redisOptions, natMap } = connection;
    return this.planOf(cluster, redisOptions, natMap);
  }

  private planOf(
    nodes: readonly unknown[],
    redisOptions: RedisOptions | undefined,
    natMap: ClusterOptions['natMap'] | ClusterConnection['natMap'],
  ): ClusterPlan {
    // ioredis parses the forms it accepts: a URL, a port, or options.
    const read = nodes.map((node) => new Redis({ ...optionsOf(node), lazyConnect: true }).options);
    const shared: RedisOptions = {};
    for (const { username, password, tls } of read) {
      if (username != null) shared.username ??= username;
      if (password != null) shared.password ??= password;
      if (tls != null) shared.tls ??= tls;
    }
    return {
      seeds: read.map(({ host, port }) => ({ host: host!, port: port! })),
      reach: (address) => {
        const name = `${address.host}:${address.port}`;
        return (typeof natMap === 'function' ? natMap(name) : natMap?.[name]) ?? address;
      },
      makeNode: ({ host, port }, role, comesBack) =>
        new Redis({
          ...DEFAULTS,
          ...this.named(role),
          ...shared,
          ...redisOptions,
          ...OURS,
          ...(!comesBack && { retryStrategy: null }),
          host,
          port,
        }),
    };
  }

  private fromFactory(role: ClientRole): Redis {
    const { sample } = this;
    if (role === 'command' && sample) {
      this.sample = null;
      return sample;
    }
    const client = ask(this.connection as Factory, role);
    if (!client.isCluster) return client as Redis;
    client.disconnect();
    throw new InvalidOptionError(
      PATH,
      'a function that makes the same kind of client for every role',
      client,
    );
  }
}

type Factory = Extract<RedisConnection, (...args: never[]) => unknown>;

/** Clients that a factory has returned. Each may be used for one connection only. */
const taken = new WeakSet<object>();

function ask(factory: Factory, role: ClientRole): Redis | Cluster {
  const client = factory(role as Exclude<ClientRole, 'heartbeat'>);
  if (typeof client?.sendCommand !== 'function') {
    throw new InvalidOptionError(PATH, 'a function that returns an ioredis client', client);
  }
  if (taken.has(client)) {
    const rule = 'a function that makes a new client at every call';
    throw new InvalidOptionError(
      PATH,
      rule,
      undefined,
      `${PATH} must be ${rule}: for '${role}' it returned one that is in use already, and each connection needs its own`,
    );
  }
  taken.add(client);
  const options = client.options as (RedisOptions & ClusterOptions) | undefined;
  refuseKeyPrefix(options ?? {}, PATH);
  if (client.isCluster) refuseKeyPrefix(options?.redisOptions ?? {}, `${PATH}.redisOptions`);
  else if (options) Object.assign(options, OURS, { lazyConnect: options.lazyConnect });
  return client;
}

function optionsOf(node: unknown): RedisOptions {
  if (typeof node === 'number') return { port: node };
  return typeof node === 'string' ? new Redis(node, { lazyConnect: true }).options : (node as RedisOptions);
}

/** The options of the module and its queues that an engine needs. */
export interface EngineSettings {
  readonly connection: RedisConnection | undefined;
  readonly prefix: string;
  /** How long a connection may be silent while a call waits for its answer. */
  readonly callMs: number;
  readonly limitsOf: (queue: string) => QueueLimits;
  /** The largest number of replicas that must confirm the adds of a queue. @default 0 */
  readonly replicasAsked?: () => number;
  /** The queues whose format is checked on every new connection. @default none */
  readonly queues?: () => readonly string[];
  /** Each command is sent inside it. @default none */
  readonly internal?: Internal;
}
