import type { QueueEngine } from '../contract/engine.js';
import { QueueFormatError, UnsupportedRedisError } from '../errors.js';
import { counted, listed, namedQueues, shortTime } from '../job/text.js';
import { isMemory, addressOf, DEFAULT_CONNECTION, type RedisConnection } from '../options/connection.js';
import type { ResolvedModuleOptions } from '../options/module-options.js';
import type { ConfigConnection, QueueRegistry } from './queue.registry.js';
import type { Log } from '../contract/log.js';
import type { PoolPlan } from '../handlers/discovery/handler.registry.js';
import type { Pool } from '../worker/worker-pool.js';

/**
 * Messages for an application with `connection: 'memory'`: why it cannot start, what to expect of it, and which jobs are lost when it
 * stops.
 */
export class InMemoryQueues {
  /** @param configs Keys of the configurations that are in use; `''` is the one without. */
  constructor(
    private readonly registry: QueueRegistry,
    private readonly configs: () => readonly string[],
  ) {}

  /** Why the application cannot start in in-memory mode. */
  faults(
    { role }: ResolvedModuleOptions,
    dispatchers: readonly string[],
    environment: string | undefined,
  ): string[] {
    const keys = this.keys();
    if (keys.length === 0) return [];
    const found: string[] = [];
    for (const key of keys) {
      const { connection } = this.registry.settingsOf(key);
      if (environment !== 'production' || !isMemory(connection) || connection.inProduction) continue;
      found.push(
        `${pathOf(key)}.connection is 'memory' and NODE_ENV is 'production': every deployment and every crash would lose ` +
          'all jobs; set it to the URL of a Redis, or to { memory: true, inProduction: true } if jobs may be lost',
      );
    }
    if (role !== 'both') {
      found.push(
        `forRoot().role must be 'both' if a connection is 'memory', got '${role}': no other process could ` +
          `${role === 'producer' ? 'run its jobs' : 'add jobs for it'}; leave it out, or set connection to the URL of a Redis`,
      );
    }
    // Dispatchers use the first configuration.
    if (keys[0] !== this.configs()[0]) return found;
    for (const name of dispatchers) {
      found.push(
        `registerDispatcher('${name}') moves tasks of other programs, which cannot reach the memory of this process; ` +
          `leave it out if connection is 'memory', or set connection to the URL of a Redis`,
      );
    }
    return found;
  }

  /** Warnings that are logged once at startup. */
  notices(): string[] {
    const keys = this.keys();
    if (keys.length === 0) return [];
    const queues = this.queues();
    const queuesText = keys.length === this.configs().length ? '' : ` of ${namedQueues(queues)}`;
    const notices = [
      `jobs${queuesText} live in the memory of this process: they are lost when it exits, and no other process sees them; ` +
        "connection: 'memory' is for development and tests; in production, set connection to the URL of a Redis",
    ];
    const asking = queues.filter((queue) => this.registry.optionsOf(queue).durability !== null);
    if (asking.length > 0) {
      notices.push(
        `the durability of ${namedQueues(asking)} is ignored in memory, which has no replicas: add resolves as soon as the job is stored`,
      );
    }
    return notices;
  }

  /** A message about the jobs that are lost when this process exits; null if there are none. */
  async lossNotice(engine: Pick<QueueEngine, 'admin'>): Promise<string | null> {
    const counted = this.queues().map(async (queue) => {
      const { waiting, delayed, active } = await engine.admin.counts(queue);
      return { queue, jobs: waiting + delayed + active };
    });
    const lost = (await Promise.all(counted)).filter(({ jobs }) => jobs > 0);
    const sum = lost.reduce((total, { jobs }) => total + jobs, 0);
    if (sum === 0) return null;
    const each = lost.map(({ queue, jobs }) => `'${queue}' ${jobs}`).join(', ');
    const all =
      sum === 1 ? '1 job that has not run to the end is' : `${sum} jobs that have not run to the end are`;
    return `${all} lost with the memory of this process: ${each}`;
  }

  private queues(): string[] {
    return this.keys().flatMap((key) => this.registry.queuesOf(key));
  }

  private keys(): string[] {
    return this.configs().filter((key) => isMemory(this.registry.settingsOf(key).connection));
  }
}

function pathOf(key: string): string {
  return key === '' ? 'forRoot()' : `forRoot('${key}')`;
}

/** `createApplicationContext` starts before its caller can enable the hooks, so the check runs later. */
const LOOK_AFTER_MS = 3000;

/**
 * Warns if nothing listens to SIGTERM: then a deployment kills the process while its jobs run, and they run again only when their lease
 * has ended.
 *
 * @returns a function that cancels the check.
 */
export function warnWithoutShutdownHooks(logger: Log): () => void {
  const timer = setTimeout(() => {
    if (process.listenerCount('SIGTERM') > 0) return;
    logger.warn(
      'nothing listens to SIGTERM, so running jobs are cut off when the process is stopped; ' +
        'call app.enableShutdownHooks() after creating the application',
    );
  }, LOOK_AFTER_MS);
  timer.unref();
  return () => clearTimeout(timer);
}

/** The name of the Redis of these configurations in log lines. */
export function redisText(configs: readonly ConfigConnection[]): string {
  const addresses = configs.flatMap(({ connection }) =>
    isMemory(connection) ? [] : [addressText(connection)],
  );
  return addresses.length > 1 ? `Redis (one of ${listed(addresses)})` : `Redis (${addresses.join('')})`;
}

function addressText(connection: RedisConnection): string {
  return addressOf(connection) ?? 'the server of the client that its function returns';
}

/** Logs which Redis each configuration uses, which reveals a connection that is missing or incomplete. */
export function logAddresses(configs: readonly ConfigConnection[], logger: Log): void {
  for (const { key, connection } of configs) {
    if (isMemory(connection)) continue;
    const isDefault = connection === DEFAULT_CONNECTION;
    logger.log(`Redis of ${pathOf(key)}: ${addressText(connection)}${isDefault ? ', the default' : ''}`);
  }
}

/** The same line about a connection is logged at most once in this time. */
const SAME_LINE_MS = 10_000;

/**
 * Logs one line when a connection is down, one when it is up again, and one when a server or a queue is refused. Returns a function
 * that stops the logging.
 */
export function logLinks(engine: Pick<QueueEngine, 'onLink'>, logger: Log): () => void {
  const down = new Set<string>();
  /** When a line was last logged. A server may accept and end a connection again and again. */
  const loggedAt = new Map<string, number>();
  const refused = new Set<string>();
  return engine.onLink(({ role, state, error, config }) => {
    const connection = `the ${role} connection to Redis${config ? ` of forRoot('${config}')` : ''}`;
    if (state === 'up') {
      if (down.delete(connection)) logger.log(`${connection} is up`);
    } else if (error instanceof QueueFormatError || error instanceof UnsupportedRedisError) {
      if (refused.has(error.message)) return;
      refused.add(error.message);
      logger.error(`${connection} is not used: ${error.message}`);
    } else if (!down.has(connection)) {
      const text = `${connection} is down${error ? ` (${error.message})` : ''}; trying again`;
      const now = performance.now();
      if (now - (loggedAt.get(text) ?? -Infinity) < SAME_LINE_MS) return;
      loggedAt.set(text, now);
      down.add(connection);
      logger.warn(text);
    }
  });
}

/** Most running jobs that the log line about a stop names. */
const MAX_NAMED = 5;

/** `waiting up to 25 s for 2 running jobs: email welcome (0mx…), media resize (0my…)`. Undefined if none is running. */
export function describeWaiting(pools: readonly Pool[]): string | undefined {
  const busy = pools.filter(({ runs }) => runs.size > 0);
  const runs = busy.flatMap((pool) => [...pool.runs].slice(0, MAX_NAMED + 1));
  if (runs.length === 0) return undefined;
  const count = busy.reduce((sum, pool) => sum + pool.runs.size, 0);
  const longestMs = Math.max(...busy.map(({ shutdown }) => shutdown.timeoutMs));
  const named = runs.slice(0, MAX_NAMED).map(({ queue, name, id }) => `${queue} ${name} (${id})`);
  const more = count > named.length ? `, and ${count - named.length} more` : '';
  return `waiting up to ${shortTime(longestMs)} for ${counted(count, 'running job')}: ${named.join(', ')}${more}`;
}

/** `email (concurrency 10)`, `critical before low (concurrency 5, low paused)`, `a 6 : b 3 (concurrency 10)`. */
export function describePool({ order, queues, concurrency }: PoolPlan, paused: ReadonlySet<string>): string {
  const names =
    order === 'strict'
      ? queues.map(({ queue }) => queue).join(' before ')
      : queues.map(({ queue, weight }) => `${queue} ${weight}`).join(' : ');
  const resting = queues.filter(({ queue }) => paused.has(queue)).map(({ queue }) => queue);
  const all = resting.length === queues.length;
  const pauses = resting.length === 0 ? '' : `, ${all ? '' : `${resting.join(' and ')} `}paused`;
  return `${names} (concurrency ${concurrency}${pauses})`;
}
