import type { Link } from './link.js';
import type { QueueLinks } from './queue-links.js';
import { Replicator } from './replicator.js';

/** A replicator for each connection that carries replicated adds. */
export class Replicators {
  private readonly made = new WeakMap<Link, Replicator>();

  constructor(
    private readonly links: QueueLinks,
    private readonly callMs: number,
  ) {}

  of(queue: string): Replicator {
    const link = this.links.of(queue);
    let replicator = this.made.get(link);
    if (!replicator) this.made.set(link, (replicator = new Replicator(link, this.callMs)));
    return replicator;
  }

  close(): Promise<void> {
    return this.links.close();
  }
}
