import type { RunningRedis } from '../redis.mjs';

export interface StartSentinelOptions {
  /** A primary that does not answer for this long is replaced. @default 1000 */
  readonly downAfterMs?: number;
  /** Further server options of the primary and the replica. */
  readonly args?: readonly string[];
}

/**
 * A primary, a replica and three sentinels on 127.0.0.1. They end when this program ends, even if this
 * program is killed.
 */
export interface RunningSentinel {
  /** The options with which ioredis finds the primary. */
  readonly connection: {
    readonly name: string;
    readonly sentinels: { readonly host: string; readonly port: number }[];
  };
  readonly servers: readonly RunningRedis[];
  /** With `process.pid` for signals. */
  readonly sentinels: readonly { readonly port: number; readonly process: { readonly pid: number } }[];
  /** Which server is the primary and which the replica, according to the sentinels. */
  roles(): Promise<{ readonly primary: RunningRedis; readonly replica: RunningRedis }>;
  /** Resolves when the replica has caught up and the sentinels are ready to replace the primary. */
  healthy(): Promise<void>;
  /** A planned failover. Resolves when the sentinels name the new primary. */
  failover(): Promise<void>;
  /** Resolves when the sentinels name another primary than this server. */
  switched(primary: RunningRedis): Promise<void>;
  stop(): Promise<void>;
}

export function startSentinel(options?: StartSentinelOptions): Promise<RunningSentinel>;
