import type { RedisConnection } from '../../options/connection.js';
import { ClusterLink } from '../cluster/cluster-link.js';
import { slotOf } from '../cluster/slot-map.js';
import { Clients, type ClientRole, type Internal } from './clients.js';
import type { LinkEvent } from '../../contract/engine.js';
import { Link } from './link.js';
import type { Arg } from './fixed-args.js';
import { NotRunningError } from '../../errors.js';

/** Carries commands: one connection, or on Redis Cluster one per master. */
export interface CommandLink {
  /** Whether a command can be sent at once. */
  readonly isUp: boolean;
  open(): void;
  /** Like `Link.send`. `near`: a key, to choose the server for a command without keys. */
  send(
    verb: string,
    name: string,
    args: Arg[],
    silentMs: number,
    until?: number,
    near?: string,
  ): Promise<any>;
  write(verb: string, name: string, args: Arg[], silentMs: number, until?: number): Promise<any>;
  /**
   * Runs the commands as one transaction. Null if that is not possible, not possible yet, or if there are no commands. Then
   * nothing is sent.
   */
  transact(
    verb: string,
    commands: () => readonly (readonly [name: string, args: Arg[]])[] | null,
    silentMs: number,
    until?: number,
  ): Promise<unknown[]> | null;
  close(): Promise<void>;
}

/** All connections of one process or thread, for any form of the `connection` option. */
export class Connections {
  private readonly clients: Clients;
  private readonly listeners = new Set<(event: LinkEvent) => void>();
  private link: Link | ClusterLink | undefined;
  /** Called with every refusal on a connection that does not carry commands. */
  onRefusal: ((role: ClientRole, reply: string, message: string) => void) | undefined;

  constructor(
    connection: RedisConnection,
    prefix: string,
    /** The role of the connection that carries commands. */
    private readonly role: ClientRole,
    /** How often a connection that carries commands looks for calls past their deadline. */
    private readonly watchMs?: number,
    private readonly internal?: Internal,
  ) {
    this.clients = new Clients(connection, prefix);
  }

  get isCluster(): boolean {
    return this.clients.cluster !== null;
  }

  onLink(listener: (event: LinkEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Passes on an event of a connection, also of one in the heartbeat thread. */
  readonly tell = (event: LinkEvent): void => {
    for (const listener of this.listeners) listener(event);
  };

  /** Returns the same object for every call. */
  commands(greet?: (link: Link) => Promise<void>): CommandLink {
    const plan = this.clients.cluster;
    const { role, tell, watchMs, internal } = this;
    return (this.link ??= plan
      ? new ClusterLink(role, plan, tell, greet, watchMs, internal)
      : new Link(role, () => this.clients.make(role), tell, greet, undefined, watchMs, internal));
  }

  /** The connections of a role for calls that must not delay commands, such as blocking calls. */
  forQueues(role: ClientRole, keyOf: (queue: string) => string): QueueLinks {
    return new QueueLinks(
      () => this.isCluster,
      (queue) => (queue === null ? this.alone(role) : this.toOwner(role, keyOf(queue))),
    );
  }

  async close(): Promise<void> {
    await this.link?.close();
    this.clients.close();
  }

  private alone(role: ClientRole): Link {
    const { tell, internal } = this;
    const refused = (reply: string, message: string) => this.onRefusal?.(role, reply, message);
    return new Link(role, () => this.clients.make(role), tell, undefined, refused, undefined, internal);
  }

  /**
   * A connection to the master that owns the slot of the key. It does not reconnect to the same node: each new connection asks
   * for the owner again.
   */
  private toOwner(role: ClientRole, key: string): Link {
    const plan = this.clients.cluster!;
    const cluster = this.commands() as ClusterLink;
    const slot = slotOf('get', [key])!;
    let node = cluster.addressOf(slot);
    const make = () => {
      node = cluster.addressOf(slot);
      return plan.makeNode(node, role, false);
    };
    const tell = (event: LinkEvent) => {
      if (event.state === 'down') cluster.lookSoon();
      this.tell(event);
    };
    const refused = (reply: string, message: string) => {
      if (reply === 'MOVED' || reply === 'CLUSTERDOWN') cluster.learn(message, node);
      if (reply === 'MOVED') link.drop(message);
      this.onRefusal?.(role, reply, message);
    };
    const link: Link = new Link(role, make, tell, undefined, refused, undefined, this.internal);
    return link;
  }
}

/** A queue's connection is closed after this time without use. */
const IDLE_MS = 60_000;

/**
 * The connections of one role, by queue. All queues share one. On Redis Cluster each queue has one to the master that owns its
 * slot. A connection is made when it is first used.
 */
export class QueueLinks {
  private readonly links = new Map<string | null, { readonly link: Link; usedAt: number }>();
  private sweptAt = performance.now();
  private closed = false;

  constructor(
    private readonly isCluster: () => boolean,
    /** `null`: one connection for all queues. */
    private readonly make: (queue: string | null) => Link,
  ) {}

  /** Whether each queue has its own connection. */
  get perQueue(): boolean {
    return this.isCluster();
  }

  /** The connection for calls of this queue. */
  of(queue: string): Link {
    if (this.closed) throw new NotRunningError('connect');
    const name = this.perQueue ? queue : null;
    const usedAt = performance.now();
    let used = this.links.get(name);
    if (used) used.usedAt = usedAt;
    else this.links.set(name, (used = { link: this.make(name), usedAt }));
    this.sweep(usedAt);
    return used.link;
  }

  /** Closes permanently. */
  async close(): Promise<void> {
    this.closed = true;
    const links = [...this.links.values()];
    this.links.clear();
    await Promise.all(links.map(({ link }) => link.close()));
  }

  private sweep(now: number): void {
    if (now - this.sweptAt < IDLE_MS / 4) return;
    this.sweptAt = now;
    for (const [name, { link, usedAt }] of this.links) {
      if (now - usedAt < IDLE_MS) continue;
      this.links.delete(name);
      void link.close();
    }
  }
}
