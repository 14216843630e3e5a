import { Redis, type Cluster, type RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../errors.js';
import type { LinkEvent } from './engine.js';
import { retryDelay } from './waiting.js';
import type { ConnectionOption } from '../options/module-options.js';

export type ClientRole = LinkEvent['role'];

/**
 * What makes ioredis safe for us, whoever configured it: it neither queues nor resends on its own, since a script whose
 * reply was lost would run twice; resending is done by number, in the rooms above.
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
} as const satisfies RedisOptions;

/** Makes the clients of one process from the `connection` option. */
export function clientFactory(
  connection: ConnectionOption | undefined,
  prefix: string,
): (role: ClientRole) => Redis | Cluster {
  return (role) => {
    if (typeof connection === 'function') return fromFactory(connection, role);
    const name = { connectionName: `godwit:${prefix}:${role}` };
    if (connection === undefined || typeof connection === 'string') {
      return new Redis(connection ?? 'redis://localhost:6379', { ...DEFAULTS, ...name, ...OURS });
    }
    const { url, ...options } = connection;
    const merged = { ...DEFAULTS, ...name, ...options, ...OURS };
    return url === undefined ? new Redis(merged) : new Redis(url, merged);
  };
}

function fromFactory(
  factory: Extract<ConnectionOption, (...args: never[]) => unknown>,
  role: ClientRole,
): Redis | Cluster {
  const client = factory(role as Exclude<ClientRole, 'heartbeat'>);
  const options = client?.options as RedisOptions | undefined;
  if (typeof client?.sendCommand !== 'function') {
    throw new InvalidOptionError('forRoot().connection', 'a function that returns an ioredis client', client);
  }
  if (options?.keyPrefix) {
    throw new InvalidOptionError(
      'forRoot().connection',
      'a client without keyPrefix (use the option prefix)',
      options.keyPrefix,
    );
  }
  if (options && !client.isCluster) Object.assign(options, OURS, { lazyConnect: options.lazyConnect });
  return client;
}

/** What an engine needs to know of the module's and the queues' options. */
export interface EngineSettings {
  readonly connection: ConnectionOption | undefined;
  readonly prefix: string;
  readonly leaseMs: number;
  /** How long one call may take before its socket counts as silent. */
  readonly callMs: number;
  readonly limitsOf: (queue: string) => QueueLimits;
  /** The most replicas that a queue wants its adds confirmed by. @default 0 */
  readonly replicasAsked?: () => number;
}

/** What the scripts keep of a queue. */
export interface QueueLimits {
  /** Events kept for readers that resume; 0: none are written. */
  readonly maxEvents: number;
  readonly deadMax: number;
  readonly deadAgeMs: number;
}
