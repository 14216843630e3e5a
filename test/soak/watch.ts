import type { QueueEvent } from '#lib/events/queue-event.js';
import type { Job } from '#lib/job/job.js';
import { isEnd } from '#lib/events/queue-event.js';
import type { Plan, QueuePlan } from './plan.js';

/** The data of each job. */
export interface Task {
  /** The place of its add among all adds of the run. */
  readonly n: number;
  readonly ms: number;
  /** How its runs end: the first `fails` of them fail. */
  readonly fails: number;
  readonly fault: 'error' | 'unrecoverable' | 'limited' | 'snooze' | 'none';
}

interface Sheet {
  readonly queue: QueuePlan;
  readonly id: string;
  readonly group: string | undefined;
  isAdded: boolean;
  runs: number;
  running: number;
  readonly ends: string[];
  /** What `@OnJob` heard of its ends. */
  readonly heard: string[];
}

/** How many jobs run at once that count against one limit, and how many may. */
interface Gauge {
  running: number;
  most: number;
}

/** Watches all runs and events, and notes what must not be. */
export class Watch {
  readonly faults: string[] = [];
  readonly sheets = new Map<string, Sheet>();
  /** Starts so far, for the summary. */
  starts = 0;
  private readonly gauges = new Map<string, Gauge>();
  /** The place of the last job of each strict group that has begun. */
  private readonly places = new Map<string, number>();
  private readonly queues: ReadonlyMap<string, QueuePlan>;
  /** Dead jobs are retried at the end. Then they come after later ones. */
  isInOrder = true;

  constructor(private readonly plan: Plan) {
    this.queues = new Map(plan.queues.map((queue) => [queue.name, queue]));
  }

  fault(text: string): void {
    if (this.faults.length < 20) this.faults.push(text);
  }

  sheetOf(queue: string, id: string, group?: string): Sheet {
    const key = `${queue} ${id}`;
    let sheet = this.sheets.get(key);
    if (!sheet) {
      const counts = { isAdded: false, runs: 0, running: 0 };
      sheet = { queue: this.queues.get(queue)!, id, group, ...counts, ends: [], heard: [] };
      this.sheets.set(key, sheet);
    }
    return sheet;
  }

  begins(job: Job): void {
    const { queue, id, group } = job;
    const sheet = this.sheetOf(queue, id, group ?? undefined);
    this.starts += 1;
    sheet.runs += 1;
    sheet.running += 1;
    if (sheet.running > 1) this.fault(`${queue} ${id} runs twice at once`);
    if (sheet.ends.some((end) => end !== 'dead'))
      this.fault(`${queue} ${id} starts after ${sheet.ends.join(', ')}`);
    for (const [name, most] of this.limitsOf(job)) {
      const gauge = this.gauge(name, most);
      gauge.running += 1;
      if (gauge.running > gauge.most) this.fault(`${gauge.running} of ${gauge.most} run at once: ${name}`);
    }
    if (sheet.queue.order === 'strict' && group && this.isInOrder) {
      const line = `${queue} ${group}`;
      const { n } = job.data as Task;
      const before = this.places.get(line) ?? -1;
      if (n < before)
        this.fault(`${queue} ${id} of group ${group} starts after a later job (${n} after ${before})`);
      this.places.set(line, Math.max(n, before));
    }
  }

  ends(job: Job): void {
    this.sheetOf(job.queue, job.id).running -= 1;
    for (const [name] of this.limitsOf(job)) this.gauge(name, 0).running -= 1;
  }

  event(event: QueueEvent): void {
    if (isEnd(event)) this.sheetOf(event.queue, event.jobId).ends.push(event.type);
  }

  /** A job was added: it must end. */
  added(queue: string, id: string): void {
    this.sheetOf(queue, id).isAdded = true;
  }

  /** What is wrong with how the jobs have ended so far. Events may still be on their way. */
  faultsOfEnds(): string[] {
    return [...this.sheets.values()].flatMap((sheet) => [...faultsOf(sheet)]);
  }

  /** A limit was changed. After it was lowered, jobs that run already may still be more. */
  allow(name: string, most: number): void {
    const gauge = this.gauge(name, most);
    gauge.most = Math.max(gauge.most, most);
  }

  private gauge(name: string, most: number): Gauge {
    let gauge = this.gauges.get(name);
    if (!gauge) this.gauges.set(name, (gauge = { running: 0, most }));
    return gauge;
  }

  /** The names of the limits that a job counts against, each with how many jobs may run at once. */
  private limitsOf({ queue, name, group }: Job): [string, number][] {
    const plan = this.queues.get(queue)!;
    const { limits, groups, uses } = plan;
    const found: [string, number | undefined][] = [
      [`queue ${queue}`, limits?.concurrency],
      [`name ${queue} ${name}`, limits?.names?.[name]?.concurrency],
    ];
    if (group) found.push([`group ${queue} ${group}`, plan.order === 'strict' ? 1 : groups?.concurrency]);
    for (const use of uses ?? []) found.push([`shared ${use}`, this.plan.shared[use]?.concurrency]);
    return found.filter((one): one is [string, number] => one[1] !== undefined);
  }
}

function* faultsOf({ queue, id, isAdded, ends, heard, running }: Sheet): Generator<string> {
  const job = `${queue.name} ${id}`;
  if (running > 0) yield `${job} still runs`;
  if (isAdded && ends.length === 0) yield `${job} has not ended`;
  // A job that is kept after its end may be removed later.
  const own = ends.at(-1) === 'removed' ? ends.slice(0, -1) : ends;
  if (own.slice(0, -1).some((end) => end !== 'dead')) yield `${job} ended as ${ends.join(', ')}`;
  for (const type of ['completed', 'dead']) {
    const count = (list: readonly string[]) => list.filter((one) => one === type).length;
    if (count(heard) > count(ends))
      yield `${job}: @OnJob heard ${heard.join(', ')}, events are ${ends.join(', ')}`;
  }
}
