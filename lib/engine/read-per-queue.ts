import type { QueueEventBatch } from '../contract/engine.js';

interface Read {
  readonly from: number;
  readonly ended: Promise<void>;
  batches: readonly QueueEventBatch[] | null;
  error: Error | null;
}

/**
 * Reads each queue with a separate call: on Redis Cluster one call cannot read the streams of different queues. `read` returns
 * when the first call brings events. The other calls keep waiting, and are used when their queue is next read from the same
 * position.
 */
export class ReadPerQueue {
  private readonly reads = new Map<string, Read>();
  private end = () => {};

  constructor(
    private readonly readOne: (
      queue: string,
      from: number,
      blockMs: number,
    ) => Promise<readonly QueueEventBatch[]>,
  ) {}

  /** Ends a running `read` with the events that have arrived. */
  interrupt(): void {
    this.end();
  }

  /** Resolves with the events that arrive first. */
  async read(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    const begun: Read[] = [];
    for (const [queue, from] of after) {
      const waiting = this.reads.get(queue);
      if (waiting?.from !== from) begun.push(this.begin(queue, from, blockMs, waiting));
    }
    let timer: NodeJS.Timeout | undefined;
    let isLate = false;
    // Calls begun now end after `blockMs` on their own. If all calls were waiting before, only this timer ends `read`.
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        isLate = begun.length === 0;
        resolve();
      }, blockMs);
    });
    const ended = new Promise<void>((resolve) => {
      this.end = () => {
        isLate = true;
        resolve();
      };
    });
    try {
      for (;;) {
        const news = this.collect(after, blockMs, begun);
        if (news.length > 0 || isLate || (begun.length > 0 && begun.every(hasEnded))) return news;
        const open = [...after.keys()].map((queue) => this.reads.get(queue)?.ended ?? never);
        await Promise.race(begun.length > 0 ? [...open, ended] : [...open, ended, late]);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** The events of all calls that ended. A call from an earlier `read` that ended without events is repeated. */
  private collect(
    after: ReadonlyMap<string, number>,
    blockMs: number,
    begun: readonly Read[],
  ): QueueEventBatch[] {
    const news: QueueEventBatch[] = [];
    for (const [queue, from] of after) {
      const read = this.reads.get(queue);
      if (!read || !hasEnded(read)) continue;
      this.reads.delete(queue);
      if (read.error) throw read.error;
      if (read.batches!.length > 0) news.push(...read.batches!);
      else if (!begun.includes(read)) this.begin(queue, from, blockMs);
    }
    return news;
  }

  private begin(queue: string, from: number, blockMs: number, behind?: Read): Read {
    const settled = (behind?.ended ?? Promise.resolve()).then(() => this.readOne(queue, from, blockMs));
    const read: Read = {
      from,
      batches: null,
      error: null,
      ended: settled.then(
        (batches) => void (read.batches = batches),
        (error: Error) => void (read.error = error),
      ),
    };
    this.reads.set(queue, read);
    return read;
  }
}

const never = new Promise<void>(() => undefined);

function hasEnded(read: Read): boolean {
  return read.batches !== null || read.error !== null;
}
