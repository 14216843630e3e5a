import type { RunningRedis } from '../redis.mjs';

export interface StartClusterOptions {
  /** Each gets a replica. @default 3 */
  readonly masters?: number;
  /** After so long a silent node counts as failed, and its replica takes over. @default 2000 */
  readonly nodeTimeoutMs?: number;
  /** Further server options of every node. */
  readonly args?: readonly string[];
  /** Settings of the certificates: then every node has a second port, which speaks TLS. */
  readonly tls?: readonly string[];
}

export interface ClusterNode extends RunningRedis {
  readonly tlsPort: number | undefined;
}

/** A Redis Cluster on 127.0.0.1. It ends with this program, however this program ends. */
export interface RunningCluster {
  /** The masters first; `nodes[i + masters]` begins as the replica of `nodes[i]`. */
  readonly nodes: readonly ClusterNode[];
  readonly urls: readonly string[];
  /** Resolves once these nodes see all slots served and every replica has caught up. @default all nodes */
  healthy(nodes?: readonly ClusterNode[]): Promise<void>;
  /** The master that serves a slot now, and its id in the cluster. */
  ownerOf(slot: number): Promise<{ readonly node: ClusterNode; readonly id: string }>;
  stop(): Promise<void>;
}

/** Starts the nodes, gives them their slots and replicas, and resolves once all agree. */
export function startCluster(options?: StartClusterOptions): Promise<RunningCluster>;
