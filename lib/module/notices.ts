import type { QueueEngine } from '../contract/engine.js';
import { namedQueues } from '../job/text.js';
import { isMemory, addressOf, DEFAULT_CONNECTION, type ConnectionOption } from '../options/connection.js';
import type { ResolvedModuleOptions } from '../options/module-options.js';
import type { QueueRegistry } from './queue.registry.js';
import type { Log } from '../contract/log.js';

/**
 * What an application with `connection: 'memory'` is told: why it does not start, what it must not expect while it runs, and what it
 * lost at the end.
 */
export class InMemoryQueues {
  /** @param configs Keys of the configurations that are in use; `''` is the one without. */
  constructor(
    private readonly registry: QueueRegistry,
    private readonly configs: () => readonly string[],
  ) {}

  /** Why this cannot be started on memory. */
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
          'all jobs; let it name a Redis, or say { memory: true, inProduction: true } if they may be lost',
      );
    }
    if (role !== 'both') {
      found.push(
        `forRoot().role must be 'both' where a connection is 'memory', got '${role}': no other process could ` +
          `${role === 'producer' ? 'run what this one adds' : 'add what this one runs'}; leave it out, or let connection name a Redis`,
      );
    }
    // Tasks are in the first store.
    if (keys[0] !== this.configs()[0]) return found;
    for (const name of dispatchers) {
      found.push(
        `registerDispatcher('${name}') moves tasks of other programs, which cannot reach the memory of this process; ` +
          `leave it out where connection is 'memory', or let that name a Redis`,
      );
    }
    return found;
  }

  /** Said once at the start. */
  notices(): string[] {
    const keys = this.keys();
    if (keys.length === 0) return [];
    const queues = this.queues();
    const whose = keys.length === this.configs().length ? '' : ` of ${namedQueues(queues)}`;
    const notices = [
      `jobs${whose} live in the memory of this process: nothing is kept when it ends, and no other process sees them; ` +
        'for more than development let the connection name a Redis',
    ];
    const asking = queues.filter((queue) => this.registry.optionsOf(queue).durability !== null);
    if (asking.length > 0) {
      notices.push(
        `the durability of ${namedQueues(asking)} asks for replicas and memory has none: add resolves as soon as the job is in`,
      );
    }
    return notices;
  }

  /** What ends with the memory of this process, as a sentence; null where nothing does. */
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

/** `createApplicationContext` is up before its caller can enable the hooks, so the look comes a little later. */
const LOOK_AFTER_MS = 3000;

/**
 * Warns when nothing listens to SIGTERM: then a deployment ends the process in the middle of its jobs, and they wait
 * for their lease to end before they run again.
 *
 * @returns takes the warning back if it has not been given yet.
 */
export function warnWithoutShutdownHooks(logger: Log): () => void {
  const timer = setTimeout(() => {
    if (process.listenerCount('SIGTERM') > 0) return;
    logger.warn(
      'nothing listens to SIGTERM, so running jobs are cut off when the process is told to end; ' +
        'call app.enableShutdownHooks() after creating the application',
    );
  }, LOOK_AFTER_MS);
  timer.unref();
  return () => clearTimeout(timer);
}

/** Which Redis each configuration uses, so that a connection that was left out or is incomplete is seen. */
export function logAddresses(
  configs: readonly { readonly key: string; readonly connection: ConnectionOption }[],
  logger: Log,
): void {
  for (const { key, connection } of configs) {
    if (isMemory(connection)) continue;
    const place = key === '' ? 'forRoot()' : `forRoot('${key}')`;
    const address = addressOf(connection) ?? 'the address of the client that its function makes';
    const isDefault = connection === DEFAULT_CONNECTION;
    logger.log(`Redis of ${place}: ${address}${isDefault ? ', the default' : ''}`);
  }
}

/** One line when a connection is lost and one when it is back. */
export function logLinks(engine: Pick<QueueEngine, 'onLink'>, logger: Log): () => void {
  const down = new Set<string>();
  return engine.onLink(({ role, state, error, config }) => {
    const connection = `the ${role} connection to Redis${config ? ` of forRoot('${config}')` : ''}`;
    if (state === 'up') {
      if (down.delete(connection)) logger.log(`${connection} is back`);
    } else if (!down.has(connection)) {
      down.add(connection);
      logger.warn(`${connection} is lost${error ? ` (${error.message})` : ''}; reconnecting`);
    }
  });
}
