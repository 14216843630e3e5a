import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { JobDefaults } from './job-options.js';
import type { Duration } from '../job/duration.js';

/** How to reach Redis: a URL, ioredis options (also with `url`), or a factory that makes a client. */
export type ConnectionOption =
  | string
  | (RedisOptions & { readonly url?: string })
  | ((role: 'command' | 'blocking' | 'events') => Redis | Cluster);

/** `QueueModule.forRoot(options)`. */
export interface QueueModuleOptions {
  /** @default 'redis://localhost:6379' */
  readonly connection?: ConnectionOption;
  /** Starts every key; `[A-Za-z0-9._-]{1,64}`. Applications that share a Redis use different ones. @default 'godwit' */
  readonly prefix?: string;
  /** What every job gets unless its queue or itself says otherwise. */
  readonly defaults?: JobDefaults;
  /** Which half of the work this process does. @default 'both' */
  readonly role?: 'producer' | 'worker' | 'both';
  /** Start the workers when the application is up; otherwise call `QueueRuntime.start()`. @default true */
  readonly autoStart?: boolean;
  /** How long `add` may take before it rejects, Redis being away included. @default '5s' */
  readonly enqueueTimeout?: Duration;
  /** Largest encoded data of a job, in bytes. @default 1048576 */
  readonly maxPayloadBytes?: number;
  readonly lease?: LeaseOptions;
  readonly shutdown?: ShutdownOptions;
  /** What every queue does with events unless it says otherwise. @default true */
  readonly events?: EventsOption;
  /** How many dead jobs each queue keeps, and how long. */
  readonly dead?: DeadOptions;
}

export interface LeaseOptions {
  /** How long a worker is trusted without a sign of life; its beat is a quarter of it. @default '8s' */
  readonly duration?: Duration;
  /** Workers a job may lose before it is dead as `stalled`. @default 5 */
  readonly maxStalls?: number;
}

export interface ShutdownOptions {
  /** How long running jobs may take to end once the application stops. @default '25s' */
  readonly timeout?: Duration;
  /** How long a handler has after its signal is aborted, before its job is given back. @default '1s' */
  readonly grace?: Duration;
}

/** `false`: no events. `max`: how many are kept for readers that resume. @default { max: 10000 } */
export type EventsOption = boolean | { readonly max: number };

export interface DeadOptions {
  /** @default 10000 */
  readonly max?: number;
  /** @default '90d' */
  readonly age?: Duration;
}

/** `QueueModule.registerQueue(options)`. */
export interface QueueOptions {
  /** `[A-Za-z0-9._-]{1,128}`. */
  readonly name: string;
  readonly defaults?: JobDefaults;
  readonly events?: EventsOption;
  readonly dead?: DeadOptions;
  readonly maxPayloadBytes?: number;
}

/** Second argument of `@Processor`. */
export interface ProcessorOptions {
  /** Jobs this process runs at once for the queue. @default 10 */
  readonly concurrency?: number;
}
