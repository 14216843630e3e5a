import type { QueueEngine } from '../contract/engine.js';
import { namedQueues } from '../job/text.js';
import { isMemory } from '../options/connection.js';
import type { ResolvedModuleOptions } from '../options/module-options.js';
import type { QueueRegistry } from './queue.registry.js';

/**
 * What an application with `connection: 'memory'` is told: why it does not start, what it must not expect while it runs, and what it
 * lost at the end.
 */
export class EmbeddedQueues {
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
  async lost(engine: Pick<QueueEngine, 'admin'>): Promise<string | null> {
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
