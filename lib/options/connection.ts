import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../errors.js';
import { oneLine } from '../errors/show.js';
import { hasFields, misspeltField } from '../job/fields.js';
import { listed, quoted } from '../job/text.js';
import { copyFields } from './check.js';

/** One node of a Redis Cluster. */
export interface ClusterNode {
  /** Host name or address. */
  readonly host: string;
  /** Its port. @default 6379 */
  readonly port?: number;
}

/** A Redis Cluster, as plain data. */
export interface ClusterConnection {
  /** Some nodes of the cluster; the others are discovered. User, password and TLS of their URLs apply to every node. */
  readonly cluster: readonly (string | ClusterNode)[];
  /** Options for the connections to every node: password, `tls`, timeouts. They override the URLs. */
  readonly redisOptions?: RedisOptions;
  /** Addresses of nodes by the `host:port` that they announce. */
  readonly natMap?: Readonly<Record<string, Required<ClusterNode>>>;
}

/**
 * How to reach Redis: a URL; ioredis options (also with `url`, or with `sentinels` and `name`); a cluster; or a function that
 * returns an ioredis client. If the function returns a `Cluster`, Godwit disconnects it and connects to its nodes with its
 * options. With a function, a timer renews leases instead of the heartbeat thread.
 *
 * @example
 * QueueModule.forRoot({ connection: { host: 'redis.internal', port: 6380, tls: {} } })
 */
export type RedisConnection =
  | string
  | (RedisOptions & {
      /** Address of the server; the other options override it. */
      readonly url?: string;
    })
  | ClusterConnection
  | ((role: 'command' | 'blocking' | 'events' | 'replicated') => Redis | Cluster);

/**
 * In-memory mode, for development: jobs are in the memory of this process and are lost when it exits. `connection: 'memory'` is the same as
 * `{ memory: true }`.
 *
 * @example
 * QueueModule.forRoot({ connection: { memory: true, inProduction: true } })
 */
export interface MemoryConnection {
  /** Marks in-memory mode. */
  readonly memory: true;
  /** Allows memory mode with `NODE_ENV=production`, although every deployment and every crash loses the jobs. @default false */
  readonly inProduction?: boolean;
}

/**
 * Where jobs are stored: in Redis, or with `'memory'` in this process.
 *
 * @example
 * QueueModule.forRoot({ connection: process.env.REDIS_URL ?? 'memory' })
 */
export type ConnectionOption = MemoryConnection | RedisConnection;

export const DEFAULT_CONNECTION = 'redis://localhost:6379';

const MEMORY = 'memory';
const URL_RULE = 'a redis:// or rediss:// URL';

export function isMemory(connection: ConnectionOption): connection is MemoryConnection {
  return typeof connection === 'object' && 'memory' in connection;
}

/**
 * Checks a connection without connecting. Errors never show a password: the user part of a URL is cut out, and of an object only the
 * wrong field is shown.
 *
 * @throws {InvalidOptionError}
 */
export function checkConnection(value: unknown, path: string): ConnectionOption {
  if (value === MEMORY) return { memory: true };
  if (typeof value === 'string') return checkUrl(value, path, `${URL_RULE}, or '${MEMORY}'`);
  if (typeof value === 'function') return value as Extract<RedisConnection, (...args: never[]) => unknown>;
  if (!hasFields(value)) {
    throw new InvalidOptionError(
      path,
      `${URL_RULE}, ioredis options, a function that returns a client, or '${MEMORY}'`,
      // A list may contain options with a password.
      Array.isArray(value) ? 'a list' : value,
    );
  }
  if (typeof (value as Partial<Redis>).duplicate === 'function') {
    throw new InvalidOptionError(
      path,
      'left out',
      undefined,
      `${path} is an ioredis client; pass a function that creates one, because several are needed and all are closed at the end`,
    );
  }
  if (MEMORY in value) return checkMemory(knownFields(value, path, MEMORY_FIELDS), path);
  if ('cluster' in value) return checkCluster(value, path);
  return checkOptions(value, path);
}

/** Why `keyPrefix` is refused: ioredis adds it to the keys of commands, but not to keys that scripts compute from arguments. */
export function refuseKeyPrefix(options: { readonly keyPrefix?: unknown }, path: string): void {
  if (options.keyPrefix === undefined || options.keyPrefix === '') return;
  throw new InvalidOptionError(
    `${path}.keyPrefix`,
    'left out',
    options.keyPrefix,
    `${path}.keyPrefix must be left out: use the option "prefix" of forRoot, because ioredis does not add keyPrefix to keys inside scripts`,
  );
}

const MEMORY_FIELDS = [MEMORY, 'inProduction'];

function checkMemory(options: Record<string, unknown>, path: string): MemoryConnection {
  const { memory, inProduction = false } = options;
  if (memory !== true) throw new InvalidOptionError(`${path}.memory`, 'true, or left out', memory);
  if (typeof inProduction !== 'boolean')
    throw new InvalidOptionError(`${path}.inProduction`, 'true or false', inProduction);
  return { memory, inProduction };
}

/** The options of ioredis 5 and 6; a record, so that the compiler reports a missing one. */
const IOREDIS: Readonly<Record<keyof RedisOptions, true>> = {
  Connector: true,
  autoPipeliningIgnoredCommands: true,
  autoResendUnfulfilledCommands: true,
  autoResubscribe: true,
  blockingTimeout: true,
  blockingTimeoutGrace: true,
  clientInfoTag: true,
  commandQueue: true,
  commandTimeout: true,
  connectTimeout: true,
  connectionName: true,
  db: true,
  disableClientInfo: true,
  disconnectTimeout: true,
  enableAutoPipelining: true,
  enableOfflineQueue: true,
  enableReadyCheck: true,
  enableTLSForSentinelMode: true,
  failoverDetector: true,
  family: true,
  himportFieldsets: true,
  host: true,
  keepAlive: true,
  keyPrefix: true,
  lazyConnect: true,
  maxLoadingRetryTime: true,
  maxRetriesPerRequest: true,
  monitor: true,
  name: true,
  natMap: true,
  noDelay: true,
  offlineQueue: true,
  password: true,
  path: true,
  port: true,
  preferredSlaves: true,
  protocol: true,
  readOnly: true,
  reconnectOnError: true,
  replyMapping: true,
  retryStrategy: true,
  role: true,
  scripts: true,
  sentinelCommandTimeout: true,
  sentinelMaxConnections: true,
  sentinelPassword: true,
  sentinelReconnectStrategy: true,
  sentinelRetryStrategy: true,
  sentinelTLS: true,
  sentinelUsername: true,
  sentinels: true,
  showFriendlyErrorStack: true,
  socketTimeout: true,
  stringNumbers: true,
  tls: true,
  updateSentinels: true,
  username: true,
};
const CONNECTION_FIELDS = ['url', ...Object.keys(IOREDIS)];
const OTHER_OPTIONS =
  'to use an option that only your version of ioredis has, pass a function that returns a client';
const ADDRESS_FIELDS = ['host', 'port'];

function checkOptions(given: object, path: string): RedisConnection {
  const options = copyFields(given, path, CONNECTION_FIELDS);
  refuseKeyPrefix(options, path);
  for (const name of Object.keys(options))
    if (!CONNECTION_FIELDS.includes(name)) throw misspeltField(path, name, CONNECTION_FIELDS, OTHER_OPTIONS);
  if (options['url'] !== undefined) checkUrl(options['url'], `${path}.url`);
  // A missing environment variable makes these two NaN, which ioredis would report only later.
  checkNumber(options['port'], 65_535, `${path}.port`);
  checkNumber(options['db'], 1_000_000, `${path}.db`);
  checkSentinels(options['sentinels'], `${path}.sentinels`);
  return options;
}

function checkSentinels(sentinels: unknown, path: string): void {
  if (sentinels === undefined || sentinels === null) return;
  if (!Array.isArray(sentinels)) throw new InvalidOptionError(path, 'a list of { host, port }', undefined);
  sentinels.forEach((one: unknown, i) => {
    if (!hasFields(one))
      throw new InvalidOptionError(`${path}[${i}]`, 'an object, { host, port }', undefined);
    const { port } = knownFields(one, `${path}[${i}]`, [...ADDRESS_FIELDS, 'family']);
    checkNumber(port, 65_535, `${path}[${i}].port`);
  });
}

/** @throws {InvalidOptionError} for an unknown field; the message does not show its value, because it may be a password. */
function knownFields(value: object, path: string, known: readonly string[]): Record<string, unknown> {
  const fields = copyFields(value, path, known);
  for (const name of Object.keys(fields)) if (!known.includes(name)) throw misspeltField(path, name, known);
  return fields;
}

const CLUSTER_FIELDS = ['cluster', 'redisOptions', 'natMap'];

function checkCluster(given: object, path: string): RedisConnection {
  refuseKeyPrefix(given, path);
  const options = knownFields(given, path, CLUSTER_FIELDS);
  const { cluster, redisOptions, natMap } = options;
  if (!Array.isArray(cluster) || cluster.length === 0) {
    throw new InvalidOptionError(`${path}.cluster`, 'a list of nodes: URLs or { host, port }', undefined);
  }
  const nodes = cluster.map((node: unknown, i) => checkNode(node, `${path}.cluster[${i}]`));
  const checked: { -readonly [K in keyof ClusterConnection]: ClusterConnection[K] } = { cluster: nodes };
  if (redisOptions !== undefined)
    checked.redisOptions = checkNodeOptions(redisOptions, `${path}.redisOptions`);
  if (natMap !== undefined) checked.natMap = checkNatMap(natMap, `${path}.natMap`);
  return checked;
}

function checkNode(node: unknown, path: string): string | { host: string; port: number } {
  if (typeof node === 'string') {
    checkUrl(node, path);
    checkClusterDb(/^\/[1-9]/.test(new URL(node).pathname), path);
    return node;
  }
  if (!hasFields(node))
    throw new InvalidOptionError(path, 'a redis:// or rediss:// URL, or { host, port }', node);
  return checkAddress(node, path);
}

function checkAddress(value: unknown, path: string): { host: string; port: number } {
  const { host, port = 6379 } = knownFields(Object(value) as object, path, ADDRESS_FIELDS);
  if (typeof host !== 'string' || host === '') {
    throw new InvalidOptionError(`${path}.host`, 'the name or address of a host', host);
  }
  checkNumber(port, 65_535, `${path}.port`);
  return { host, port: Number(port) };
}

function checkNodeOptions(options: unknown, path: string): RedisOptions {
  if (!hasFields(options)) throw new InvalidOptionError(path, 'ioredis options', undefined);
  const checked = checkOptions(options, path) as RedisOptions;
  checkClusterDb(Number(checked.db ?? 0) !== 0, `${path}.db`);
  for (const field of ['host', 'port', 'path', 'url', 'sentinels']) {
    if (field in checked) throw leaveOut(`${path}.${field}`, 'nodes are named by `cluster`');
  }
  return checked;
}

function checkClusterDb(isAnother: boolean, path: string): void {
  if (isAnother) throw leaveOut(path, 'a cluster has only database 0');
}

function leaveOut(path: string, why: string): InvalidOptionError {
  return new InvalidOptionError(path, 'left out', undefined, `${path} must be left out: ${why}`);
}

function checkNatMap(map: unknown, path: string): NonNullable<ClusterConnection['natMap']> {
  if (typeof map !== 'object' || map === null || Array.isArray(map)) {
    throw new InvalidOptionError(path, 'an object of { host, port } by host:port', undefined);
  }
  const entries = Object.entries(map).map(([from, to]) => [from, checkAddress(to, `${path}['${from}']`)]);
  return Object.fromEntries(entries) as NonNullable<ClusterConnection['natMap']>;
}

/** Checks a whole number. A string of digits is valid, because ioredis accepts it. */
function checkNumber(value: unknown, max: number, path: string): void {
  if (value === undefined) return;
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (Number.isInteger(number) && (number as number) >= 0 && (number as number) <= max) return;
  throw new InvalidOptionError(path, `an integer from 0 to ${max}`, value);
}

/** @throws {InvalidOptionError} */
export function checkUrl(value: unknown, path: string, rule = URL_RULE): string {
  if (typeof value !== 'string' || !isRedisUrl(value)) {
    throw new InvalidOptionError(path, rule, withoutSecrets(value));
  }
  // ioredis reads options from the query as well.
  const query = new URL(value).searchParams;
  refuseKeyPrefix({ keyPrefix: query.get('keyPrefix') ?? undefined }, path);
  for (const name of query.keys())
    if (!Object.hasOwn(IOREDIS, name)) throw misspeltField(path, name, Object.keys(IOREDIS), OTHER_OPTIONS);
  return value;
}

/**
 * The address of the server for log lines: host, port and database, never a user or a password.
 *
 * @returns null if the connection is a function.
 */
export function addressOf(connection: RedisConnection): string | null {
  if (typeof connection === 'function') return null;
  if (typeof connection === 'string') return serverOf({ url: connection });
  if ('cluster' in connection) {
    const nodes = connection.cluster.map((node) =>
      typeof node === 'string' ? new URL(node).host : hostOf(node),
    );
    return `the cluster of ${listed(nodes)}`;
  }
  return serverOf(connection);
}

function serverOf(options: RedisOptions & { readonly url?: string }): string {
  const url = options.url === undefined ? undefined : new URL(options.url);
  const db = options.db ?? Number(url?.searchParams.get('db') ?? url?.pathname.slice(1) ?? 0);
  const { sentinels, path } = options;
  const host = options.host ?? (url?.hostname || 'localhost');
  const port = options.port ?? (url?.port || 6379);
  let place = hostOf({ host, port: Number(port) });
  if (sentinels) place = `${quoted(options.name ?? '')} of the sentinels ${listed(sentinels.map(hostOf))}`;
  else if (path) place = path;
  return `${oneLine(place)}, database ${db}`;
}

function hostOf({ host = 'localhost', port }: { readonly host?: string; readonly port?: number }): string {
  return `${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port ?? 6379}`;
}

/** The path must be the number of the database; anything else comes from a password that was not percent-encoded. */
function isRedisUrl(text: string): boolean {
  return /^rediss?:\/\//i.test(text) && URL.canParse(text) && /^(\/\d*)?$/.test(new URL(text).pathname);
}

/** Cuts out everything up to the last @: it may be a user and a password, even if the rest is not a URL. */
function withoutSecrets(value: unknown): unknown {
  return typeof value === 'string'
    ? value.replace(/^(\w+:\/\/)?.*@/s, '$1***@').replace(/\?.*/s, '?***')
    : value;
}
