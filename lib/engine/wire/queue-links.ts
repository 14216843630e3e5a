import { NotRunningError } from '../../errors.js';
import type { Link } from './link.js';

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

  /** Closes for good. */
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
