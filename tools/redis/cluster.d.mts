import type { RunningRedis } from '../redis.mjs';

export interface StartClusterOptions {
  /** Number of masters. Each has a replica. @default 3 */
  readonly masters?: number;
  /** A node that does not answer for this long counts as failed, and its replica takes over. @default 2000 */
  readonly nodeTimeoutMs?: number;
  /** Further server options of every node. */
  readonly args?: readonly string[];
  /** Options for the certificates. With them, every node has a second port with TLS. */
  readonly tls?: readonly string[];
}

export interface ClusterNode extends RunningRedis {
  readonly tlsPort: number | undefined;
}

/** A Redis Cluster on 127.0.0.1. It ends when this program ends, even if this program is killed. */
export interface RunningCluster {
  /** The masters first; `nodes[i + masters]` begins as the replica of `nodes[i]`. */
  readonly nodes: readonly ClusterNode[];
  readonly urls: readonly string[];
  /** Resolves when these nodes see all slots served and every replica has caught up. @default all nodes */
  healthy(nodes?: readonly ClusterNode[]): Promise<void>;
  /** The master that now serves a slot, and the id of that master in the cluster. */
  ownerOf(slot: number): Promise<{ readonly node: ClusterNode; readonly id: string }>;
  stop(): Promise<void>;
}

/** Starts the nodes, assigns slots and replicas, and resolves when all nodes agree. */
export function startCluster(options?: StartClusterOptions): Promise<RunningCluster>;
