import type { AddOptions, Contender, OpenOptions, Payload, Session } from '../../bench/src/contender.js';

/** Which promise a contender breaks. */
export type Lie = 'once' | 'removed' | 'retries' | 'attempts' | 'delays' | 'schedules' | 'results';

interface Stored {
  readonly id: number;
  readonly data: Payload;
  readonly delayMs: number;
}

/** A contender that keeps its jobs in memory, and all of its promises but one; `leave` puts something into Redis for a job. */
export function contenderThat(
  lie: Lie | undefined,
  leave: (id: number) => Promise<unknown> = () => Promise.resolve(),
): Contender {
  const schedules = new Set<string>();
  return {
    name: 'fake',
    packages: [],
    terms: [],
    offers: ['retries', 'delays', 'schedules', 'results'],
    open: (options) => Promise.resolve(new FakeSession(options, schedules, lie, leave)),
  };
}

class FakeSession implements Session {
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly results = new Map<number, unknown>();
  private open = 0;
  private ids = 0;

  constructor(
    private readonly options: OpenOptions,
    private readonly schedules: Set<string>,
    private readonly lie: Lie | undefined,
    private readonly leave: (id: number) => Promise<unknown>,
  ) {}

  add(_queue: string, data: Payload, { delayMs = 0 }: AddOptions = {}): Promise<number> {
    this.ids += 1;
    this.open += 1;
    const job = { id: this.ids, data, delayMs: this.lie === 'delays' ? 0 : delayMs };
    this.later(job.delayMs, () => void this.run(job, 1));
    if (this.lie === 'once' && data.n === 3) this.later(0, () => void this.options.work?.handle(data));
    return Promise.resolve(job.id);
  }

  async addBulk(queue: string, batch: readonly Payload[], options?: AddOptions): Promise<void> {
    for (const data of batch) await this.add(queue, data, options);
  }

  schedule(queue: string, id: string, everyMs: number, data: Payload): Promise<number> {
    const dueAt = Date.now() + everyMs;
    if (this.schedules.has(id) && this.lie !== 'schedules') return Promise.resolve(dueAt);
    this.schedules.add(id);
    const next = (): void => {
      void this.add(queue, data);
      this.later(everyMs, next);
    };
    this.later(everyMs, next);
    return Promise.resolve(dueAt);
  }

  resultOf(_queue: string, added: unknown): Promise<unknown> {
    return Promise.resolve(this.lie === 'results' ? undefined : this.results.get(added as number));
  }

  outstanding(): Promise<number> {
    return Promise.resolve(this.open);
  }

  close(): Promise<void> {
    for (const timer of this.timers) clearTimeout(timer);
    return Promise.resolve();
  }

  private async run(job: Stored, attempt: number): Promise<void> {
    try {
      if (this.lie === 'removed') await this.leave(job.id);
      this.results.set(job.id, await this.options.work?.handle(job.data));
      this.open -= 1;
    } catch {
      const { attempts = 1, delayMs = 0 } = this.options.retry ?? {};
      if (attempt === attempts + (this.lie === 'attempts' ? 1 : 0)) this.open -= 1;
      else this.later(this.lie === 'retries' ? 0 : delayMs, () => void this.run(job, attempt + 1));
    }
  }

  private later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act();
    }, ms);
    this.timers.add(timer);
  }
}
