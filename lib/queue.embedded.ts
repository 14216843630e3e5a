import type { QueueEngine } from './engine/engine.js';
import { isMemory } from './options/connection.js';
import type { ResolvedModuleOptions, ResolvedQueueOptions } from './options/module-options.js';

/*
 * What an application with `connection: 'memory'` is told: why it does not start, what it must not expect while it runs, and what it
 * lost at the end.
 */

/** Said once at the start. */
export const EMBEDDED_NOTICE =
  'jobs live in the memory of this process: nothing is kept when it ends, and no other process sees them; ' +
  'for more than development let forRoot().connection name a Redis';

/** Why this cannot be started on memory; empty with a Redis. */
export function embeddedFaults(
  { connection, role }: ResolvedModuleOptions,
  dispatchers: readonly string[],
  environment: string | undefined,
): string[] {
  if (!isMemory(connection)) return [];
  const found: string[] = [];
  if (environment === 'production' && !connection.inProduction) {
    found.push(
      `forRoot().connection is 'memory' and NODE_ENV is 'production': every deployment and every crash would lose all jobs; ` +
        'let it name a Redis, or say { memory: true, inProduction: true } if they may be lost',
    );
  }
  if (role !== 'both') {
    found.push(
      `forRoot().role must be 'both' where connection is 'memory', got '${role}': no other process could ` +
        `${role === 'producer' ? 'run what this one adds' : 'add what this one runs'}; leave it out, or let connection name a Redis`,
    );
  }
  for (const name of dispatchers) {
    found.push(
      `registerDispatcher('${name}') moves tasks of other programs, which cannot reach the memory of this process; ` +
        `leave it out where connection is 'memory', or let that name a Redis`,
    );
  }
  return found;
}

/** What is ignored, as a sentence; null where nothing is. */
export function ignoredDurability(
  module: Pick<ResolvedModuleOptions, 'durability'>,
  queues: readonly Pick<ResolvedQueueOptions, 'name' | 'durability'>[],
): string | null {
  const asking = queues.filter(({ durability }) => durability !== null).map(({ name }) => `'${name}'`);
  if (module.durability === null && asking.length === 0) return null;
  const who = asking.length > 0 ? ` of queue ${asking.join(', ')}` : '';
  return `the durability${who} asks for replicas and memory has none: add resolves as soon as the job is in`;
}

/** What ends with the memory of this process, as a sentence; null where nothing does. */
export async function lostJobs(
  engine: Pick<QueueEngine, 'admin'>,
  queues: readonly string[],
): Promise<string | null> {
  const counts = await Promise.all(
    queues.map(async (queue) => ({ queue, ...(await engine.admin.counts(queue)) })),
  );
  const lost = counts
    .map(({ queue, waiting, delayed, active }) => ({ queue, jobs: waiting + delayed + active }))
    .filter(({ jobs }) => jobs > 0);
  if (lost.length === 0) return null;
  const sum = lost.reduce((total, { jobs }) => total + jobs, 0);
  const each = lost.map(({ queue, jobs }) => `'${queue}' ${jobs}`).join(', ');
  return `${sum} ${sum === 1 ? 'job that has' : 'jobs that have'} not run to the end ${sum === 1 ? 'is' : 'are'} lost with the memory of this process: ${each}`;
}
