import { worksOn } from '../../contract/process-verbs.js';
import { Log } from '../../contract/log.js';
import { within } from '../../contract/retry.js';
import { messageOf } from '../../errors/thrown.js';
import {
  readEach,
  reasonsOf,
  type LimitsOfQueue,
  type QueueInfo,
  type QueueInspector,
  type WorkerInfo,
} from '../../inspect/queue-inspector.js';
import { servingOf } from '../../inspect/serving.js';
import type { Family, MetricInfo, Sample } from './text.js';

/** How long an answer is reused, for several scrapers. */
const CACHE_MS = 1_000;
/** How long a page waits for Redis. */
const LIMIT_MS = 2_000;

const INFO = {
  jobs: { name: 'godwit_queue_jobs', type: 'gauge', help: 'Jobs of a queue, by state.' },
  oldest: {
    name: 'godwit_queue_oldest_waiting_seconds',
    type: 'gauge',
    help: 'For how long the oldest waiting job could have run; 0 if nothing waits.',
  },
  paused: { name: 'godwit_queue_paused', type: 'gauge', help: '1 if the queue is paused for all processes.' },
  workers: {
    name: 'godwit_queue_workers',
    type: 'gauge',
    help: 'Processes that work on the queue and are neither paused nor stopping.',
  },
  slots: {
    name: 'godwit_queue_slots',
    type: 'gauge',
    help: 'Jobs of the queue that these processes can run at once; slots that queues share count for each.',
  },
  blocked: {
    name: 'godwit_queue_event_loop_blocked_seconds',
    type: 'gauge',
    help: 'Longest time in the last minute for which a process that works on the queue had a blocked event loop; 0 for less than 0.1 s.',
  },
  limitMax: {
    name: 'godwit_limit_max',
    type: 'gauge',
    help: 'Most starts in the time of a rate, or most running jobs of a concurrency.',
  },
  limitUsed: {
    name: 'godwit_limit_used',
    type: 'gauge',
    help: 'How much of the rate or the concurrency is used.',
  },
  limitHeld: {
    name: 'godwit_limit_held_seconds',
    type: 'gauge',
    help: 'For how long a hold or an open circuit breaker lets no job start; 0 if jobs may start.',
  },
  breaker: {
    name: 'godwit_breaker_open',
    type: 'gauge',
    help: '1 if the circuit breaker is open or half-open, 0 if it is closed.',
  },
  retryDelay: {
    name: 'godwit_retry_delay_seconds',
    type: 'gauge',
    help: 'By how much the retry budget delays the retry of a job that fails now; 0 while the budget has room.',
  },
  groups: {
    name: 'godwit_groups',
    type: 'gauge',
    help: 'Groups: ready if jobs wait and one may start, resting until their rate allows the next start, stopped by a dead job.',
  },
  lag: {
    name: 'godwit_schedule_lag_seconds',
    type: 'gauge',
    help: 'How late the most overdue schedule of the queue is; 0 if none is.',
  },
  processes: { name: 'godwit_processes', type: 'gauge', help: 'Worker processes of the prefix, by state.' },
  success: {
    name: 'godwit_collect_success',
    type: 'gauge',
    help: '1 if Redis answered for the metrics of all queues, 0 if some or all are missing on this page.',
  },
  duration: {
    name: 'godwit_collect_duration_seconds',
    type: 'gauge',
    help: 'How long Redis took to answer for the metrics of the queues.',
  },
} as const satisfies Record<string, MetricInfo>;

const PROCESS_STATES = ['running', 'paused', 'quiet', 'draining'] as const;

/** The source of the gauges. */
export type GaugeSource = Pick<
  QueueInspector,
  'registered' | 'namesOf' | 'look' | 'limitsOf' | 'sharedLimits' | 'scheduleLags' | 'workers'
>;

/** The values read so far. */
interface Found {
  /** In the order of the names. */
  readonly queues: Map<string, QueueInfo | null>;
  readonly limits: LimitsOfQueue[];
  lags: readonly { readonly queue: string; readonly lagMs: number }[];
  /** Null if they could not be read. */
  workers: readonly WorkerInfo[] | null;
}

/** Reads the state of all queues of a prefix, the same from every process. */
export class QueueGauges {
  private last: { readonly at: number; readonly families: Promise<Family[]> } | undefined;
  private readonly logger = new Log('QueueMetrics');
  /** The last error of each queue that could not be read as a whole. */
  private faults: ReadonlyMap<string, string> = new Map();
  /** Whether Redis did not answer for the last page. */
  private isAway = false;

  constructor(private readonly inspector: GaugeSource) {}

  readonly infos: readonly MetricInfo[] = Object.values(INFO);

  /** Never rejects: if Redis does not answer in time, there are no gauges but `godwit_collect_success 0`. */
  families(): Promise<Family[]> {
    const now = performance.now();
    if (!this.last || now - this.last.at >= CACHE_MS) this.last = { at: now, families: this.read() };
    return this.last.families;
  }

  private async read(): Promise<Family[]> {
    const start = performance.now();
    const found: Found = { queues: new Map(), limits: [], lags: [], workers: null };
    let isWhole = false;
    const asked = this.collect(found).then((all) => (isWhole = all));
    await within(LIMIT_MS, asked);
    const seconds = (performance.now() - start) / 1000;
    return [
      ...familiesOf(found),
      { ...INFO.success, samples: [{ labels: {}, value: Number(isWhole) }] },
      { ...INFO.duration, samples: [{ labels: {}, value: Math.round(seconds * 1e6) / 1e6 }] },
    ];
  }

  /** Puts everything into `found` as soon as it is read. Returns whether nothing is missing. */
  private async collect(found: Found): Promise<boolean> {
    const { inspector } = this;
    const { registered } = inspector;
    const faults = new Map<string, Error>();
    const readQueues = async (names: readonly string[]) => {
      for (const name of names) found.queues.set(name, null);
      const lags = inspector
        .scheduleLags(names, faults)
        .then((some) => (found.lags = [...found.lags, ...some]));
      const queues = readEach(names, (name) => this.readQueue(name, found), faults);
      await Promise.all([lags, queues]);
    };
    // Whatever fails, the rest is shown: on Redis Cluster each of these calls may be to another node.
    const parts = await Promise.allSettled([
      readQueues(registered),
      inspector.namesOf().then(async (all) => {
        const known = new Set(registered);
        const shared = async () => {
          if (all.length > 0) found.limits.push(await inspector.sharedLimits(all[0]!));
        };
        // Awaited together: if one failed first, nothing would handle an error of the other, and the process would exit.
        await Promise.all([readQueues(all.filter((name) => !known.has(name))), shared()]);
      }),
      inspector.workers().then((workers) => (found.workers = workers)),
    ]);
    this.logFaults(faults);
    this.logAway(parts.find((part) => part.status === 'rejected')?.reason);
    return faults.size === 0 && parts.every(({ status }) => status === 'fulfilled');
  }

  private async readQueue(name: string, { queues, limits }: Found): Promise<void> {
    const { info, isLimited } = await this.inspector.look(name);
    queues.set(name, info);
    if (isLimited) limits.push(await this.inspector.limitsOf(name));
  }

  /** Logs when Redis stops answering, and when it answers again. Nothing else in an exporter logs this. */
  private logAway(error: unknown): void {
    if (error !== undefined && !this.isAway)
      this.logger.warn(`metrics of the queues are missing: ${messageOf(error)}`);
    if (error === undefined && this.isAway) this.logger.log('metrics of the queues are complete again');
    this.isAway = error !== undefined;
  }

  /** Logs each error of a queue once, not at each page. */
  private logFaults(faults: ReadonlyMap<string, Error>): void {
    const isNew = ([queue, error]: [string, Error]) => this.faults.get(queue) !== messageOf(error);
    for (const { reason, queues } of reasonsOf(new Map([...faults].filter(isNew))))
      this.logger.warn(`metrics of ${queues} are missing: ${reason}`);
    this.faults = new Map(Array.from(faults, ([queue, error]) => [queue, messageOf(error)]));
  }
}

function familiesOf({ queues: found, limits, lags, workers }: Found): Family[] {
  const queues = [...found.values()].filter((queue) => queue !== null);
  if (queues.length === 0 && !workers) return [];
  const perQueue = (read: (queue: QueueInfo) => number): Sample[] =>
    queues.map((queue) => ({ labels: { queue: queue.name }, value: read(queue) }));
  return [
    {
      ...INFO.jobs,
      samples: queues.flatMap(({ name, counts }) =>
        Object.entries(counts).map(([state, value]) => ({ labels: { queue: name, state }, value })),
      ),
    },
    { ...INFO.oldest, samples: perQueue(({ oldestWaitingMs }) => (oldestWaitingMs ?? 0) / 1000) },
    { ...INFO.paused, samples: perQueue(({ paused }) => Number(paused)) },
    ...(workers ? workerFamilies(workers, perQueue) : []),
    ...limitFamilies(limits),
    { ...INFO.groups, samples: limits.flatMap(groupSamples) },
    { ...INFO.lag, samples: lags.map(({ queue, lagMs }) => ({ labels: { queue }, value: lagMs / 1000 })) },
  ];
}

function workerFamilies(
  workers: readonly WorkerInfo[],
  perQueue: (read: (queue: QueueInfo) => number) => Sample[],
): Family[] {
  const running = workers.filter(({ state }) => state !== 'draining');
  const workersOf = (name: string) => {
    const { processes, paused } = servingOf(running, name);
    return processes - paused;
  };
  const poolsOf = (name: string) =>
    running.flatMap(({ pools }) =>
      pools.filter(({ queues: served, paused }) => served.includes(name) && !paused.includes(name)),
    );
  const blockedMsOf = (name: string) =>
    Math.max(0, ...workers.filter((worker) => worksOn(worker, name)).map(({ blockedMs }) => blockedMs));
  return [
    { ...INFO.workers, samples: perQueue(({ name }) => workersOf(name)) },
    {
      ...INFO.slots,
      samples: perQueue(({ name }) => poolsOf(name).reduce((sum, { concurrency }) => sum + concurrency, 0)),
    },
    { ...INFO.blocked, samples: perQueue(({ name }) => blockedMsOf(name) / 1000) },
    {
      ...INFO.processes,
      samples: PROCESS_STATES.map((state) => ({
        labels: { state },
        value: workers.filter((worker) => worker.state === state).length,
      })),
    },
  ];
}

/** None for a queue without groups and without a limit for all groups. */
function groupSamples({ queue, limits, groups }: LimitsOfQueue): Sample[] {
  if (groups.ready + groups.resting + groups.stopped === 0 && !limits.some(({ field }) => field === 'g'))
    return [];
  return Object.entries(groups).map(([state, value]) => ({ labels: { queue, state }, value }));
}

/** The limits of queues, of job names and of all that queues share. Groups are left out, because there may be any number of them. */
function limitFamilies(all: readonly LimitsOfQueue[]): Family[] {
  const max: Sample[] = [];
  const used: Sample[] = [];
  const held: Sample[] = [];
  const open: Sample[] = [];
  const delayed: Sample[] = [];
  for (const { queue, limits } of all) {
    for (const { field, rule, left, running, blockedForMs, nextInMs, breaker, retryDelayMs } of limits) {
      if (field === 'g') continue;
      const labels = { queue, limit: limitLabel(field) };
      const { rate, concurrency, retryBudget } = rule;
      const ofRate = rate && left !== null ? [['rate', rate.max, rate.max - left] as const] : [];
      const ofConcurrency = concurrency ? [['concurrency', concurrency, running] as const] : [];
      for (const [kind, most, now] of [...ofRate, ...ofConcurrency]) {
        max.push({ labels: { ...labels, kind }, value: most });
        used.push({ labels: { ...labels, kind }, value: now });
      }
      if (breaker !== null) open.push({ labels, value: Number(breaker !== 'closed') });
      if (retryBudget) delayed.push({ labels, value: retryDelayMs / 1000 });
      const heldMs =
        breaker === 'open' || breaker === 'half-open' ? Math.max(blockedForMs, nextInMs) : blockedForMs;
      if (rate || concurrency || breaker !== null || heldMs > 0) held.push({ labels, value: heldMs / 1000 });
    }
  }
  return [
    { ...INFO.limitMax, samples: max },
    { ...INFO.limitUsed, samples: used },
    { ...INFO.limitHeld, samples: held },
    { ...INFO.breaker, samples: open },
    { ...INFO.retryDelay, samples: delayed },
  ];
}

function limitLabel(field: string): string {
  if (field === 'q') return 'queue';
  return `${field.startsWith('n:') ? 'name' : 'shared'}:${field.slice(2)}`;
}
