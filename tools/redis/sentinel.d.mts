import type { RunningRedis } from '../redis.mjs';

export interface StartSentinelOptions {
  /** A primary that is silent for so long is replaced. @default 1000 */
  readonly downAfterMs?: number;
  /** Further server options of the primary and the replica. */
  readonly args?: readonly string[];
}

/** A primary, a replica and three sentinels on 127.0.0.1. They end with this program, however this program ends. */
export interface RunningSentinel {
  /** What ioredis needs to find the primary. */
  readonly connection: {
    readonly name: string;
    readonly sentinels: { readonly host: string; readonly port: number }[];
  };
  readonly servers: readonly RunningRedis[];
  /** With `process.pid` for signals. */
  readonly sentinels: readonly { readonly port: number; readonly process: { readonly pid: number } }[];
  /** Who is what, as the sentinels see it now. */
  roles(): Promise<{ readonly primary: RunningRedis; readonly replica: RunningRedis }>;
  /** Resolves once the replica has caught up and the sentinels are ready to replace the primary. */
  healthy(): Promise<void>;
  /** A planned failover; resolves at the switch. */
  failover(): Promise<void>;
  /** Resolves once the sentinels name another server than this one. */
  switched(primary: RunningRedis): Promise<void>;
  stop(): Promise<void>;
}

export function startSentinel(options?: StartSentinelOptions): Promise<RunningSentinel>;
