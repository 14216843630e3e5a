import { Redis } from 'ioredis';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { startRedis, type RunningRedis, type StartRedisOptions } from '../../tools/redis.mjs';
import { spawnApp, type AppPlan, type AppProcess } from '../faults/support/spawn.js';
import { bootApp } from '../support/app.js';
import { atEnd } from '../support/cleanup.js';
import { format, type Figure } from './report.js';
import type { Result, Trial } from './trial.js';

export const PREFIX = 'trial';
const FLOW = new URL('support/flow.mjs', import.meta.url).href;

/** A Redis of a trial, and clients that observe it from outside. */
export interface Store {
  readonly server: RunningRedis;
  /** A plain client, not one of the library. */
  readonly admin: Redis;
}

/** The parts of a trial: servers and processes, which end with it, and a place for its figures. */
export class Lab {
  readonly results: Result[] = [];
  readonly times: number;
  readonly jobs: number;

  constructor(
    private readonly trial: Trial,
    given: { readonly times?: number; readonly jobs?: number },
    private readonly write: (line: string) => void,
  ) {
    this.times = given.times ?? trial.times;
    this.jobs = given.jobs ?? trial.jobs ?? 0;
  }

  /** The figures of one repetition. */
  say(text: string): void {
    this.write(`  ${this.trial.name}: ${text}`);
  }

  /** A result. */
  judge(figure: Figure): void {
    const result = format(this.trial.name, figure);
    this.results.push(result);
    this.write(line(result));
  }

  async store(options: Omit<StartRedisOptions, 'private'> = {}): Promise<Store> {
    const server = await startRedis({ ...options, private: true });
    atEnd(() => server.stop());
    const admin = new Redis(server.url, { retryStrategy: () => 50 });
    admin.on('error', () => undefined);
    atEnd(() => admin.disconnect());
    return { server, admin };
  }

  /** A process with an application of its own. */
  worker(store: Store, plan: Partial<AppPlan> & { root?: QueueModuleOptions } = {}): Promise<AppProcess> {
    const { root, ...rest } = plan;
    return spawnApp({
      extras: FLOW,
      ...rest,
      root: { connection: store.server.url, prefix: PREFIX, ...root },
    });
  }

  /** An application in this process that adds, reads and subscribes. It runs no jobs. */
  async producer(store: Store, ...names: readonly string[]) {
    const root = QueueModule.forRoot({ connection: store.server.url, prefix: PREFIX, role: 'producer' });
    const queues = names.map((name) => QueueModule.registerQueue({ name }));
    const { get } = await bootApp({ imports: [root, ...queues] });
    return { queue: (name: string) => get<Queue>(getQueueToken(name)), events: get(QueueEvents) };
  }
}

function line({ trial, what, figure, unit, must, pass }: Result): string {
  const value = `${trial}: ${what}: ${figure} ${unit}`.trim();
  return must === undefined ? value : `${value} (must: ${must}) ${pass ? 'PASS' : 'FAIL'}`;
}

/** Seconds since then, by the clock of this process. */
export const secondsSince = (since: number, at = performance.now()) => (at - since) / 1000;

/** Calls it n times, this many at once. */
export async function repeat<T>(n: number, atOnce: number, act: (i: number) => Promise<T>): Promise<T[]> {
  const done: T[] = [];
  let next = 0;
  const one = async () => {
    while (next < n) {
      const i = next++;
      done[i] = await act(i);
    }
  };
  await Promise.all(Array.from({ length: Math.min(n, atOnce) }, one));
  return done;
}

export { emptied } from '../faults/support/app.js';

export async function end(...processes: readonly AppProcess[]): Promise<void> {
  for (const process of processes) process.kill('SIGKILL');
  await Promise.all(processes.map((process) => process.exited));
}

export const worst = (values: readonly number[]) => Math.max(...values);
export const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
