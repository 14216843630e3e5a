import type { QueueEventBatch } from '../contract/engine.js';

interface Read {
  readonly from: number;
  readonly ended: Promise<void>;
  batches: readonly QueueEventBatch[] | null;
  error: Error | null;
}

/**
 * On Redis Cluster the streams of different queues cannot be read in one call, so each queue is read by a call of its own. Those
 * that still wait when another has brought something are left waiting, for the next time their queue is read from the same
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

  /** Ends a running `read` with what there is. */
  interrupt(): void {
    this.end();
  }

  /** Answers with what comes first. */
  async read(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    const begun: Read[] = [];
    for (const [queue, from] of after) {
      const waiting = this.reads.get(queue);
      if (waiting?.from !== from) begun.push(this.begin(queue, from, blockMs, waiting));
    }
    let timer: NodeJS.Timeout | undefined;
    let isLate = false;
    // What was begun now ends by itself; where all were waiting already, nothing else ends this.
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

  /** What has ended with news; what waited before and has ended without waits again. */
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
