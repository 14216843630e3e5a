import type { QueueEvent } from '#lib/events/queue-event.js';
import type { Job } from '#lib/job/job.js';
import type { Witness } from './handlers.js';
import type { Task, Watch } from './watch.js';

/** The fields of a job that the checks read. */
export type SeenJob = Pick<Job<Task>, 'queue' | 'id' | 'name' | 'group' | 'data'>;

/** The report of a process about its runs. */
export type Report = { readonly at: number } & (
  | { readonly kind: 'ready' }
  | { readonly kind: 'begins'; readonly run: number; readonly job: SeenJob }
  | { readonly kind: 'ends'; readonly run: number }
  | { readonly kind: 'revised'; readonly queue: string; readonly id: string; readonly revision: number }
  | { readonly kind: 'received'; readonly queue: string; readonly id: string; readonly end: string }
);

/** Milliseconds on a clock that all processes of the machine share. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Collects what several processes report, and tells the watch in the order of time when all have ended: reports of different processes
 * do not arrive in this order.
 */
export class Replay implements Witness {
  private readonly entries: { at: number; apply: () => void }[] = [];
  /** The runs that have begun and not ended, at the time of the replay. */
  private readonly open = new Map<string, Job<Task>>();
  private readonly lastAt = new Map<number, number>();

  constructor(private readonly watch: Watch) {}

  begins(): number {
    throw new Error('only other processes run jobs');
  }

  ends(): void {}

  received(queue: string, id: string, end: string): void {
    this.watch.received(queue, id, end);
  }

  revised(queue: string, id: string, revision: number): void {
    this.add(sharedNow(), () => this.watch.revised(queue, id, revision));
  }

  outOfOrder(): void {
    this.add(sharedNow(), () => this.watch.outOfOrder());
  }

  report(pid: number, report: Report): void {
    const { at } = report;
    this.lastAt.set(pid, at);
    if (report.kind === 'begins') {
      const job = report.job as Job<Task>;
      this.add(at, () => {
        this.watch.begins(job);
        this.open.set(`${pid} ${report.run}`, job);
      });
    } else if (report.kind === 'ends') {
      this.add(at, () => this.end(`${pid} ${report.run}`));
    } else if (report.kind === 'revised') {
      this.add(at, () => this.watch.revised(report.queue, report.id, report.revision));
    } else if (report.kind === 'received') {
      this.received(report.queue, report.id, report.end);
    }
  }

  /** A process was killed. Its jobs run again when its lease ends. */
  killed(pid: number, at: number): void {
    this.add(Math.max(at, this.lastAt.get(pid) ?? 0), () => this.endAll((key) => key.startsWith(`${pid} `)));
  }

  /** A worker may lose its lease while its process lives, because the machine is busy. From then on the job may run elsewhere. */
  event({ type, queue, jobId, at }: QueueEvent): void {
    if (type !== 'stalled') return;
    this.add(at.getTime() - Date.now() + sharedNow(), () =>
      this.endAll((_, job) => job.queue === queue && job.id === jobId),
    );
  }

  play(): void {
    for (const { apply } of this.entries.toSorted((a, b) => a.at - b.at)) apply();
  }

  private add(at: number, apply: () => void): void {
    this.entries.push({ at, apply });
  }

  private endAll(matches: (key: string, job: Job<Task>) => boolean): void {
    for (const [key, job] of this.open) if (matches(key, job)) this.end(key);
  }

  private end(key: string): void {
    const job = this.open.get(key);
    if (job) this.watch.ends(job);
    this.open.delete(key);
  }
}
