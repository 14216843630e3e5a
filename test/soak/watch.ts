import { QueueFullError } from '#lib/errors.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import type { Job } from '#lib/job/job.js';
import type { GroupOptions, RateOptions } from '#lib/options/limit-options.js';
import { within } from '../support/wait.js';
import type { Witness } from './handlers.js';
import { JobEvents } from './job-events.js';
import { chargeOf } from './jobs.js';
import type { Plan, QueuePlan } from './plan.js';
import { faultOfRate, type Claim } from './rates.js';

/** The data of each job. */
export interface Task {
  /** The place of its add among all adds of the run. */
  readonly n: number;
  readonly ms: number;
  /** How many runs fail before one completes. */
  readonly fails: number;
  /** How they fail. */
  readonly fault: 'error' | 'unrecoverable' | 'limited' | 'snooze';
  /** Rises with each change of the data. */
  readonly revision: number;
  /** Whether the handler ignores its signal. */
  readonly isDeaf: boolean;
  /** The methods that the handler calls. */
  readonly call: 'progress' | 'log' | 'update' | 'charge' | null;
  /** The key of a job that holds it until it has ended: no other runs at the same time. */
  readonly key?: string;
}

/** The history of the jobs with one id. */
interface JobRecord {
  readonly queue: QueuePlan;
  readonly id: string;
  /** How many adds with this id made a job. */
  added: number;
  name: string;
  group: string | null;
  /** The least cost of each of its starts. */
  cost: number;
  /** The data of its next run is not older. */
  revision: number;
  runs: number;
  running: number;
  events: JobEvents;
  /** Whether its queue was obliterated. */
  isForgotten: boolean;
  /** The ends that an `@OnJob` method received. */
  readonly received: string[];
}

/** How many jobs run at once that count against one limit, and how many may. */
interface Gauge {
  running: number;
  most: number;
}

/**
 * How many exchanges all workers together may make in a second: so many, and so many more for each start. Workers that wake themselves
 * or each other make thousands.
 */
const CALLS = { least: 500, perStart: 20 } as const;

/** Published after a queue was obliterated. */
export const OBLITERATED = 'obliterated';

/** How long an add may wait for room. */
const ROOM_MS = 100_000;

/** Prints all runs and events, to find the cause of a fault. */
const LOGS = process.env['SOAK_LOG'] === '1';

/** Watches all runs and events, and collects the faults. */
export class Watch implements Witness {
  readonly faults: string[] = [];
  readonly jobs = new Map<string, JobRecord>();
  /** Starts so far, for the summary. */
  starts = 0;
  /** How many queues were obliterated. */
  obliterations = 0;
  /** The longest time from a question to shared limits to the end of the claim. Other processes do not report theirs. */
  longestClaimMs = 0;
  private readonly gauges = new Map<string, Gauge>();
  /** The place of the last job of each strict group that has begun. */
  private readonly places = new Map<string, number>();
  private readonly queues: ReadonlyMap<string, QueuePlan>;
  /** The job of each add. */
  private readonly idOf = new Map<string, string>();
  /** How many jobs a schedule has added. */
  private readonly fired = new Map<string, number>();
  /** Limits whose rate was changed at run time. Their claims are not counted. */
  private readonly changedRates = new Set<string>();
  /** The second that `calls` and `startsBefore` are about. */
  private second = 0;
  private calls = 0;
  private startsBefore = 0;
  private revision = 0;
  private isInOrder = true;

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
      const job = { name: '', group: null, cost: Infinity, revision: 0 };
      const counts = { added: 0, runs: 0, running: 0, received: [], events: new JobEvents() };
      record = { queue: this.queues.get(queue)!, id, ...job, ...counts, isForgotten: false };
      this.jobs.set(key, record);
    }
    return record;
  }

  begins(job: Job): number {
    const { queue, id, group } = job;
    if (LOGS) console.log('begins', queue, id, group, JSON.stringify(job.data));
    const record = this.recordOf(queue, id);
    this.starts += 1;
    record.runs += 1;
    record.running += 1;
    if (record.running > 1) this.fault(`${queue} ${id} runs twice at once`);
    for (const { n } of [job.data as Task | Task[]].flat()) this.runsAdd(`${queue} ${n}`, id);
    const { revision, call, n } = job.data as Task;
    if (call === 'charge') this.costs(queue, id, chargeOf({ n }));
    if (revision < record.revision)
      this.fault(`${queue} ${id} has old data: ${revision}, changed to ${record.revision} before it began`);
    for (const [name, most] of this.gaugesOf(job)) {
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
    return record.runs;
  }

  /** An add makes one job. A schedule adds several with the same data. */
  private runsAdd(add: string, id: string): void {
    const other = this.idOf.get(add) ?? id;
    if (other !== id && !id.includes('@')) this.fault(`${add} was added twice: as ${other} and ${id}`);
    this.idOf.set(add, id);
  }

  /** A worker exchanges. @param at ms, by any clock */
  exchanges(queue: string, at: number): void {
    const second = Math.floor(at / 1000);
    if (second !== this.second) {
      this.second = second;
      this.calls = 0;
      this.startsBefore = this.starts;
    }
    this.calls += 1;
    const starts = this.starts - this.startsBefore;
    if (this.calls === CALLS.least + CALLS.perStart * starts + 1)
      this.fault(`${queue}: the workers make ${this.calls} calls in a second with ${starts} starts`);
  }

  ends(job: Job): void {
    this.recordOf(job.queue, job.id).running -= 1;
    for (const [name] of this.gaugesOf(job)) this.gauge(name, 0).running -= 1;
  }

  event(event: QueueEvent): void {
    if (LOGS) console.log('event', JSON.stringify(event));
    if (event.type === 'published' && event.name === OBLITERATED) this.forget(event.queue);
    if (event.jobId === undefined) return;
    const record = this.recordOf(event.queue, event.jobId);
    record.name = event.name;
    const fault = record.events.next(event);
    if (fault) this.fault(`${event.queue} ${event.jobId} ${fault}`);
  }

  /** A queue was obliterated: its jobs do not end. The workers may still report ends from before. */
  private forget(queue: string): void {
    this.obliterations += 1;
    for (const record of this.jobs.values())
      if (record.queue.name === queue)
        Object.assign(record, { added: 0, events: new JobEvents(), isForgotten: true });
  }

  /** An add that waits for room. It must end, and not because there was no room. */
  async waits<T>(queue: string, add: Promise<T>, timeout = ROOM_MS): Promise<T> {
    try {
      return await within(add, { timeout, what: `an add finds room in ${queue}` });
    } catch (error) {
      if (error instanceof QueueFullError) this.fault(`an add to ${queue} was refused: ${error.message}`);
      throw error;
    }
  }

  /** So many jobs have places of a shared limit, as Redis counts them. */
  taken(limit: string, running: number): void {
    const { most } = this.gauge(`shared ${limit}`, this.plan.shared[limit]!.concurrency ?? Infinity);
    if (running > most) this.fault(`${running} of ${most} places are taken: shared ${limit}`);
  }

  /** A job was added: it must end. */
  added(queue: string, id: string, group: string | null = null, cost = 1): void {
    const record = this.recordOf(queue, id);
    this.costs(queue, id, cost);
    record.added += 1;
    record.group = group;
    // The id may be that of a job that has ended.
    record.revision = 0;
  }

  /** A job was added with this cost, or its handler corrects its cost to this. */
  costs(queue: string, id: string, cost: number): void {
    const record = this.recordOf(queue, id);
    record.cost = Math.min(record.cost, cost);
  }

  nextRevision(): number {
    return (this.revision += 1);
  }

  /** The data of a job was changed. */
  revised(queue: string, id: string, revision: number): void {
    this.recordOf(queue, id).revision = revision;
  }

  received(queue: string, id: string, end: string): void {
    this.recordOf(queue, id).received.push(end);
  }

  /** From now on dead jobs are retried. They come after later ones. */
  outOfOrder(): void {
    this.isInOrder = false;
  }

  /** A schedule has added so many jobs, and adds no more. */
  scheduled(queue: string, schedule: string, fired: number): void {
    this.fired.set(`${queue} ${schedule}@`, fired);
  }

  /** The problems of the events so far. Some events may still be on their way. */
  faultsOfEnds(): string[] {
    const jobs = [...this.jobs];
    const ofSchedules = [...this.fired].flatMap(([start, fired]) => {
      const added = jobs.filter(([key, { events }]) => isOf(key, start) && events.lives > 0).length;
      return added === fired ? [] : [`${start} has added ${fired} jobs, events are of ${added}`];
    });
    return [...jobs.flatMap(([, record]) => [...faultsOf(record)]), ...ofSchedules, ...this.faultsOfRates()];
  }

  private *faultsOfRates(): Generator<string> {
    const claims = new Map<string, { rate: RateOptions; of: Claim[] }>();
    for (const record of this.jobs.values()) {
      for (const [name, { rate }] of this.limitsOf({ ...record, queue: record.queue.name })) {
        if (rate === undefined || this.changedRates.has(name)) continue;
        const found = claims.get(name) ?? { rate, of: [] };
        claims.set(name, found);
        // A shared limit counts costs after the claim, and a bucket may owe that of its last job.
        const isStrict = rate.window !== 'bucket' && !name.startsWith('shared ') && record.cost < Infinity;
        const cost = isStrict ? record.cost : 1;
        found.of.push(...record.events.claimedAt.map((at) => ({ at, cost })));
      }
    }
    for (const [name, { rate, of }] of claims) {
      // Starts of a shared limit are counted in a call before the claim, so claims may be closer to each other.
      const fault = faultOfRate(name, rate, of, name.startsWith('shared ') ? this.longestClaimMs : 0);
      if (fault) yield fault;
    }
  }

  /** A concurrency was changed. After it was lowered, jobs that run already may still be more. */
  allow(name: string, most: number | null | undefined): void {
    if (most === undefined) return;
    const gauge = this.gauge(name, 0);
    gauge.most = Math.max(gauge.most, most ?? Infinity);
  }

  /** A rate was changed. */
  changeRate(name: string): void {
    this.changedRates.add(name);
  }

  private gauge(name: string, most: number): Gauge {
    let gauge = this.gauges.get(name);
    if (!gauge) this.gauges.set(name, (gauge = { running: 0, most }));
    gauge.most = Math.max(gauge.most, most);
    return gauge;
  }

  /** How many jobs may run at once of each limit that a job counts against. */
  private *gaugesOf(job: Job): Generator<[string, number]> {
    for (const [name, { concurrency }] of this.limitsOf(job))
      if (concurrency !== undefined) yield [name, concurrency];
    const { key } = job.data as Task;
    if (key !== undefined) yield [`unique ${job.queue} ${job.name} ${key}`, 1];
  }

  /** The limits that a job counts against, by their names. */
  private *limitsOf({
    queue,
    name,
    group,
  }: Pick<Job, 'queue' | 'name' | 'group'>): Generator<[string, Limit]> {
    const { order, limits, groups, uses = [] } = this.queues.get(queue)!;
    if (limits) yield [`queue ${queue}`, limits];
    if (limits?.names?.[name]) yield [`name ${queue} ${name}`, limits.names[name]];
    if (group && groups)
      yield [`group ${queue} ${group}`, { ...groups, ...(order === 'strict' && { concurrency: 1 }) }];
    for (const use of uses) yield [`shared ${use}`, this.plan.shared[use] ?? {}];
  }
}

/** A job that `runNow` added has another id. */
const isOf = (key: string, start: string) => key.startsWith(start) && /@\d{4}-/.test(key);

type Limit = Pick<GroupOptions, 'concurrency' | 'rate'>;

function* faultsOf({
  queue,
  id,
  added,
  events,
  received,
  running,
  isForgotten,
}: JobRecord): Generator<string> {
  const job = `${queue.name} ${id}`;
  const { lives, state, ends } = events;
  if (running > 0) yield `${job} still runs`;
  if (lives < added) yield `${job} was added ${added} times, events are of ${lives}`;
  if (state !== 'gone') yield `${job} has not ended`;
  if (isForgotten) return;
  for (const type of ['completed', 'dead']) {
    const count = (list: readonly string[]) => list.filter((one) => one === type).length;
    if (count(received) > count(ends))
      yield `${job}: @OnJob received ${received.join(', ')}, events are ${ends.join(', ')}`;
  }
}
