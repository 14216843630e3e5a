import { isEnd, type QueueEvent } from '#lib/events/queue-event.js';
import type { Job } from '#lib/job/job.js';
import type { Plan, QueuePlan } from './plan.js';

/** The data of each job. */
export interface Task {
  /** The place of its add among all adds of the run. */
  readonly n: number;
  readonly ms: number;
  /** How many runs fail before one completes. */
  readonly fails: number;
  /** How they fail. */
  readonly fault: 'error' | 'unrecoverable' | 'limited' | 'snooze';
}

/** What has happened to a job. */
interface JobRecord {
  readonly queue: QueuePlan;
  readonly id: string;
  isAdded: boolean;
  runs: number;
  running: number;
  readonly ends: string[];
  /** The ends that an `@OnJob` method received. */
  readonly received: string[];
}

/** How many jobs run at once that count against one limit, and how many may. */
interface Gauge {
  running: number;
  most: number;
}

/** Watches all runs and events, and collects the faults. */
export class Watch {
  readonly faults: string[] = [];
  readonly jobs = new Map<string, JobRecord>();
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

  recordOf(queue: string, id: string): JobRecord {
    const key = `${queue} ${id}`;
    let record = this.jobs.get(key);
    if (!record) {
      const counts = { isAdded: false, runs: 0, running: 0 };
      record = { queue: this.queues.get(queue)!, id, ...counts, ends: [], received: [] };
      this.jobs.set(key, record);
    }
    return record;
  }

  begins(job: Job): void {
    const { queue, id, group } = job;
    const record = this.recordOf(queue, id);
    this.starts += 1;
    record.runs += 1;
    record.running += 1;
    if (record.running > 1) this.fault(`${queue} ${id} runs twice at once`);
    if (record.ends.some((end) => end !== 'dead'))
      this.fault(`${queue} ${id} starts after ${record.ends.join(', ')}`);
    for (const [name, most] of this.limitsOf(job)) {
      const gauge = this.gauge(name, most);
      gauge.running += 1;
      if (gauge.running > gauge.most) this.fault(`${gauge.running} of ${gauge.most} run at once: ${name}`);
    }
    if (record.queue.order === 'strict' && group && this.isInOrder) {
      const line = `${queue} ${group}`;
      const { n } = job.data as Task;
      const before = this.places.get(line) ?? -1;
      if (n < before)
        this.fault(`${queue} ${id} of group ${group} starts after a later job (${n} after ${before})`);
      this.places.set(line, Math.max(n, before));
    }
  }

  ends(job: Job): void {
    this.recordOf(job.queue, job.id).running -= 1;
    for (const [name] of this.limitsOf(job)) this.gauge(name, 0).running -= 1;
  }

  event(event: QueueEvent): void {
    if (isEnd(event)) this.recordOf(event.queue, event.jobId).ends.push(event.type);
  }

  /** A job was added: it must end. */
  added(queue: string, id: string): void {
    this.recordOf(queue, id).isAdded = true;
  }

  /** What is wrong with how the jobs have ended so far. Events may still be on their way. */
  faultsOfEnds(): string[] {
    return [...this.jobs.values()].flatMap((record) => [...faultsOf(record)]);
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

function* faultsOf({ queue, id, isAdded, ends, received, running }: JobRecord): Generator<string> {
  const job = `${queue.name} ${id}`;
  if (running > 0) yield `${job} still runs`;
  if (isAdded && ends.length === 0) yield `${job} has not ended`;
  // A job that is kept after its end may be removed later.
  const own = ends.at(-1) === 'removed' ? ends.slice(0, -1) : ends;
  if (own.slice(0, -1).some((end) => end !== 'dead')) yield `${job} ended as ${ends.join(', ')}`;
  for (const type of ['completed', 'dead']) {
    const count = (list: readonly string[]) => list.filter((one) => one === type).length;
    if (count(received) > count(ends))
      yield `${job}: @OnJob received ${received.join(', ')}, events are ${ends.join(', ')}`;
  }
}
