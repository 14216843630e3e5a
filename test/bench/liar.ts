import type { AddOptions, Contender, OpenOptions, Payload, Session } from '../../bench/src/contender.js';

/** Which promise a contender breaks. */
export type Lie =
  | 'once'
  | 'removed'
  | 'retries'
  | 'attempts'
  | 'delays'
  | 'schedules'
  | 'results'
  | 'groups'
  | 'order'
  | 'turns'
  | 'rates';

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
    offers: ['retries', 'delays', 'schedules', 'results', 'groups', 'turns', 'rates'],
    open: (options) => Promise.resolve(new FakeSession(options, schedules, lie, leave)),
  };
}

class FakeSession implements Session {
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly results = new Map<number, unknown>();
  /** The waiting jobs of each group. The group whose turn is next is the first one. */
  private readonly lines = new Map<string, Stored[]>();
  private running = 0;
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
    if (this.options.groups) this.wait(job, this.options.groups.of(data.n));
    else this.later(job.delayMs + this.untilAllowed(job.id), () => this.start(job));
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

  /** A rate of fixed windows. */
  private untilAllowed(id: number): number {
    const { rate } = this.options;
    if (rate === undefined || this.lie === 'rates') return 0;
    return Math.floor((id - 1) / rate.max) * rate.perMs;
  }

  private start(job: Stored): void {
    this.options.watchStarts?.(Date.now());
    void this.run(job, 1);
  }

  private wait(job: Stored, group: string): void {
    const line = this.lines.get(group) ?? [];
    if (this.lie === 'order') line.unshift(job);
    else line.push(job);
    this.lines.set(group, line);
    this.later(0, () => void this.serve());
  }

  /** Starts the next job of the next group. The group gets its next turn after all others, and after this job has ended. */
  private async serve(): Promise<void> {
    const { groups, work } = this.options;
    const [next] = this.lines;
    if (next === undefined || this.running >= (work?.concurrency ?? 0)) return;
    const [group, line] = next;
    const job = line.shift()!;
    const isHeld = groups!.isOneAtATime && this.lie !== 'groups';
    if (line.length === 0 || this.lie !== 'turns') this.lines.delete(group);
    if (line.length > 0 && !isHeld) this.lines.set(group, line);
    this.running += 1;
    await this.run(job, 1);
    this.running -= 1;
    if (line.length > 0 && isHeld) this.lines.set(group, line);
    this.later(0, () => void this.serve());
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
