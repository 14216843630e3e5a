import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../errors.js';
import { unknownField } from '../job/fields.js';

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
  /** Options for the connections to every node: password, `tls`, timeouts. They win over the URLs. */
  readonly redisOptions?: RedisOptions;
  /** Addresses of nodes by the `host:port` that they announce. */
  readonly natMap?: Readonly<Record<string, Required<ClusterNode>>>;
}

/**
 * How to reach Redis: a URL; ioredis options, also with `url`, or with `sentinels` and `name`; a cluster; or a function that
 * returns an ioredis client. Of a `Cluster` from a function only nodes and options are used; it is disconnected, and Godwit connects to
 * its nodes itself. With a function, leases are renewed by a timer instead of the heartbeat thread.
 *
 * @example
 * QueueModule.forRoot({ connection: { host: 'redis.internal', port: 6380, tls: {} } })
 */
export type RedisConnection =
  | string
  | (RedisOptions & {
      /** Address of the server; the other options win over it. */
      readonly url?: string;
    })
  | ClusterConnection
  | ((role: 'command' | 'blocking' | 'events' | 'replicated') => Redis | Cluster);

/**
 * In-memory mode, for development: jobs live in this process and are lost when it exits. `connection: 'memory'` is the same as
 * `{ memory: true }`.
 *
 * @example
 * QueueModule.forRoot({ connection: { memory: true, inProduction: true } })
 */
export interface MemoryConnection {
  /** Marks in-memory mode. */
  readonly memory: true;
  /** Allow it with `NODE_ENV=production`, although every deployment and every crash loses the jobs. @default false */
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
 * Checks what can be checked without connecting. Errors never show a password: of a URL its user part is cut out, of
 * an object only the field at fault is shown.
 *
 * @throws {InvalidOptionError}
 */
export function checkConnection(value: unknown, path: string): ConnectionOption {
  if (value === MEMORY) return { memory: true };
  if (typeof value === 'string') return checkUrl(value, path, `${URL_RULE}, or '${MEMORY}'`);
  if (typeof value === 'function') return value as Extract<RedisConnection, (...args: never[]) => unknown>;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidOptionError(
      path,
      `${URL_RULE}, ioredis options, a function that makes a client, or '${MEMORY}'`,
      // What a list holds may be options with a password.
      Array.isArray(value) ? 'a list' : value,
    );
  }
  if (typeof (value as Partial<Redis>).duplicate === 'function') {
    throw new InvalidOptionError(
      path,
      'left out',
      undefined,
      `${path} is an ioredis client; give a function that makes one, since several are needed and are closed at the end`,
    );
  }
  const options = value as Record<string, unknown>;
  if (MEMORY in options) return checkMemory(options, path);
  return 'cluster' in options ? checkCluster(options, path) : checkOptions(options, path);
}

/** ioredis puts its prefix before the keys of commands only: scripts would miss it on every key they are told in words. */
export function refuseKeyPrefix(options: { readonly keyPrefix?: unknown }, path: string): void {
  if (options.keyPrefix === undefined || options.keyPrefix === '') return;
  throw new InvalidOptionError(
    `${path}.keyPrefix`,
    'left out',
    options.keyPrefix,
    `${path}.keyPrefix: use \`prefix\` of forRoot instead: ioredis' keyPrefix is not applied to keys inside scripts`,
  );
}

const MEMORY_FIELDS = [MEMORY, 'inProduction'];

function checkMemory(options: Record<string, unknown>, path: string): MemoryConnection {
  for (const key of Object.keys(options)) {
    if (!MEMORY_FIELDS.includes(key)) throw unknownField(path, key, MEMORY_FIELDS);
  }
  const { memory, inProduction = false } = options;
  if (memory !== true) throw new InvalidOptionError(`${path}.memory`, 'true, or left out', memory);
  if (typeof inProduction !== 'boolean')
    throw new InvalidOptionError(`${path}.inProduction`, 'true or false', inProduction);
  return { memory, inProduction };
}

function checkOptions(options: Record<string, unknown>, path: string): RedisConnection {
  refuseKeyPrefix(options, path);
  if (options['url'] !== undefined) checkUrl(options['url'], `${path}.url`);
  // The two that come as NaN from a missing environment variable, which ioredis would only stumble over later.
  checkNumber(options['port'], 65_535, `${path}.port`);
  checkNumber(options['db'], 1_000_000, `${path}.db`);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(options)) if (key !== '__proto__') copy[key] = options[key];
  return copy;
}

const CLUSTER_FIELDS = ['cluster', 'redisOptions', 'natMap'];

function checkCluster(options: Record<string, unknown>, path: string): RedisConnection {
  refuseKeyPrefix(options, path);
  for (const key of Object.keys(options)) {
    if (!CLUSTER_FIELDS.includes(key)) throw unknownField(path, key, CLUSTER_FIELDS);
  }
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
  if (typeof node !== 'object' || node === null) {
    throw new InvalidOptionError(path, 'a redis:// or rediss:// URL, or { host, port }', node);
  }
  return checkAddress(node, path);
}

function checkAddress(value: unknown, path: string): { host: string; port: number } {
  const { host, port = 6379, ...others } = Object(value) as Record<string, unknown>;
  // Values are not shown: what does not belong here may be a password.
  const [other] = Object.keys(others);
  if (other !== undefined) throw unknownField(path, other, ['host', 'port']);
  if (typeof host !== 'string' || host === '') {
    throw new InvalidOptionError(`${path}.host`, 'the name or address of a host', host);
  }
  checkNumber(port, 65_535, `${path}.port`);
  return { host, port: Number(port) };
}

function checkNodeOptions(options: unknown, path: string): RedisOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidOptionError(path, 'ioredis options', undefined);
  }
  const checked = checkOptions(options as Record<string, unknown>, path) as RedisOptions;
  checkClusterDb(Number(checked.db ?? 0) !== 0, `${path}.db`);
  for (const field of ['host', 'port', 'path', 'url', 'sentinels']) {
    if (field in checked) throw leaveOut(`${path}.${field}`, 'nodes are named by `cluster`');
  }
  return checked;
}

function checkClusterDb(isAnother: boolean, path: string): void {
  if (isAnother) throw leaveOut(path, 'a cluster has no other database than 0');
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

/** ioredis takes digits in a string too. */
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
  refuseKeyPrefix({ keyPrefix: new URL(value).searchParams.get('keyPrefix') ?? undefined }, path);
  return value;
}

/** The path is the number of the database; anything else there comes from a password that was not percent-encoded. */
function isRedisUrl(text: string): boolean {
  return /^rediss?:\/\//i.test(text) && URL.canParse(text) && /^(\/\d*)?$/.test(new URL(text).pathname);
}

/** Everything up to the last @ may be a user and password, also where the rest is no URL. */
function withoutSecrets(value: unknown): unknown {
  return typeof value === 'string'
    ? value.replace(/^(\w+:\/\/)?.*@/s, '$1***@').replace(/\?.*/s, '?***')
    : value;
}
