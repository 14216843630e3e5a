import { classOf, RUN_BOUNDS_MS, WAIT_BOUNDS_MS } from '../../contract/history.js';
import {
  endOf,
  hasRun,
  type NotAdded,
  type ObservedRun,
  type WorkObserver,
} from '../../contract/observer.js';
import { countedName } from '../../contract/stats.js';
import type { Exemplar, Family, HistogramSample, Labels, MetricInfo, Sample } from './text.js';

const EXCHANGE_BOUNDS_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000];
const BATCH_BOUNDS = [0, 1, 5, 25, 100, 500];

const INFO = {
  added: {
    name: 'godwit_jobs_added_total',
    type: 'counter',
    help: 'Jobs that this process added, that another job of the same id or a full queue kept out, or that could not be added.',
  },
  removed: {
    name: 'godwit_waiting_jobs_dropped_total',
    type: 'counter',
    help: 'Waiting jobs that adds of this process removed from a full queue (onFull: dropOldest).',
  },
  runs: {
    name: 'godwit_runs_total',
    type: 'counter',
    help: 'Runs that ended in this process, by outcome.',
  },
  run: {
    name: 'godwit_run_duration_seconds',
    type: 'histogram',
    help: 'Duration of the runs that completed or failed in this process.',
  },
  wait: {
    name: 'godwit_wait_duration_seconds',
    type: 'histogram',
    help: 'How long jobs waited for their first run, from when they could have run, by the clock of Redis.',
  },
  dead: {
    name: 'godwit_jobs_dead_total',
    type: 'counter',
    help: 'Jobs that died in this process, by reason.',
  },
  stalls: {
    name: 'godwit_stalls_total',
    type: 'counter',
    help: 'Jobs that this process took back from a worker that went silent.',
  },
  exchange: {
    name: 'godwit_exchange_duration_seconds',
    type: 'histogram',
    help: 'Duration of the calls to Redis that settle and claim jobs.',
  },
  batch: {
    name: 'godwit_exchange_jobs',
    type: 'histogram',
    help: 'How many jobs one call to Redis settled, and claimed.',
  },
} as const satisfies Record<string, MetricInfo>;

/** Outcomes that alerts use. They are shown as 0 for a job name that has run. */
const ALERTED = ['completed', 'retrying', 'dead'];

class Histogram {
  readonly classes: number[];
  sum = 0;
  /** The newest traced run of each class, `at` in ms. */
  private exemplars: Exemplar[] | undefined;

  constructor(private readonly bounds: readonly number[]) {
    this.classes = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number, traceId?: string): void {
    const at = classOf(value, this.bounds);
    this.classes[at]! += 1;
    this.sum += value;
    if (traceId !== undefined) (this.exemplars ??= [])[at] = { traceId, value, at: Date.now() };
  }

  /** @param unit divides values and bounds. */
  sample(labels: Labels, unit: number): HistogramSample {
    const { bounds, classes, sum, exemplars } = this;
    return {
      labels,
      bounds: bounds.map((bound) => bound / unit),
      classes: [...classes],
      sum: sum / unit,
      ...(exemplars && {
        exemplars: exemplars.map((one) => ({ ...one, value: one.value / unit, at: one.at / 1000 })),
      }),
    };
  }
}

/** Counters of one job name of a queue. */
class NameMetrics {
  readonly added = new Map<string, number>();
  readonly runs = new Map<string, number>();
  readonly dead = new Map<string, number>();
  readonly run = new Histogram(RUN_BOUNDS_MS);
  readonly wait = new Histogram(WAIT_BOUNDS_MS);
}

/** Counts the work of this process since its start, for Prometheus. */
export class WorkMetrics implements WorkObserver {
  private readonly queues = new Map<string, Map<string, NameMetrics>>();
  private readonly removed = new Map<string, number>();
  private readonly stalls = new Map<string, number>();
  private readonly exchangeMs = new Histogram(EXCHANGE_BOUNDS_MS);
  private readonly claimed = new Histogram(BATCH_BOUNDS);
  private readonly settled = new Histogram(BATCH_BOUNDS);

  ended(queue: string, name: string, run: ObservedRun, now: number): void {
    const metrics = this.of(queue, name);
    const { outcome, durationUs, firstRunnableAt, trace } = run;
    increase(metrics.runs, endOf(run));
    if (outcome?.kind === 'dead') increase(metrics.dead, outcome.reason);
    if (!outcome || !hasRun(outcome)) return;
    metrics.run.observe(durationUs / 1000, trace?.traceId);
    if (firstRunnableAt !== undefined)
      metrics.wait.observe(Math.max(0, now - durationUs / 1000 - firstRunnableAt));
  }

  added(queue: string, names: readonly string[]): void {
    for (const name of names) increase(this.of(queue, name).added, 'added');
  }

  notAdded(queue: string, names: readonly string[], why: NotAdded): void {
    for (const name of names) increase(this.of(queue, name).added, why);
  }

  madeRoom(queue: string, count: number): void {
    increase(this.removed, queue, count);
  }

  stalled(queue: string, count: number, dead: number): void {
    increase(this.stalls, queue, count);
    // The store does not tell their names.
    if (dead > 0) increase(this.of(queue, '').dead, 'stalled', dead);
  }

  exchanged(ms: number | null, settled: number, claimed: number): void {
    if (ms !== null) this.exchangeMs.observe(ms);
    this.settled.observe(settled);
    this.claimed.observe(claimed);
  }

  /** @param served queues that this process works on */
  families(served: readonly string[] = []): Family[] {
    const counters = (pick: (metrics: NameMetrics) => Map<string, number>, label: string): Sample[] =>
      this.each((labels, metrics) =>
        Array.from(pick(metrics), ([key, value]) => ({ labels: { ...labels, [label]: key }, value })),
      );
    const histograms = (pick: (metrics: NameMetrics) => Histogram): HistogramSample[] =>
      this.each((labels, metrics) => {
        const one = pick(metrics).sample(labels, 1000);
        return one.classes.some((count) => count > 0) ? [one] : [];
      });
    return [
      { ...INFO.added, samples: counters(({ added }) => added, 'result') },
      {
        ...INFO.removed,
        samples: Array.from(this.removed, ([queue, value]) => ({ labels: { queue }, value })),
      },
      {
        ...INFO.runs,
        samples: counters(({ runs }) => (runs.size > 0 ? fromZero(ALERTED, runs) : runs), 'outcome'),
      },
      { ...INFO.run, samples: histograms(({ run }) => run) },
      { ...INFO.wait, samples: histograms(({ wait }) => wait) },
      { ...INFO.dead, samples: counters(({ dead }) => dead, 'reason') },
      {
        ...INFO.stalls,
        samples: [...fromZero(served, this.stalls)].map(([queue, value]) => ({ labels: { queue }, value })),
      },
      { ...INFO.exchange, samples: [this.exchangeMs.sample({}, 1000)] },
      {
        ...INFO.batch,
        samples: [
          this.claimed.sample({ direction: 'claimed' }, 1),
          this.settled.sample({ direction: 'settled' }, 1),
        ],
      },
    ];
  }

  private each<T>(read: (labels: Labels, metrics: NameMetrics) => T[]): T[] {
    return [...this.queues].flatMap(([queue, names]) =>
      [...names].flatMap(([name, metrics]) => read({ queue, name }, metrics)),
    );
  }

  private of(queue: string, name: string): NameMetrics {
    let names = this.queues.get(queue);
    if (!names) this.queues.set(queue, (names = new Map()));
    const known = names.get(name);
    if (known) return known;
    // Producers can add any name, so one series for each would be unbounded.
    const counted = countedName(name, names);
    let metrics = names.get(counted);
    if (!metrics) names.set(counted, (metrics = new NameMetrics()));
    return metrics;
  }
}

/** With 0 for these keys: `increase` and `rate` do not see the first value of a series that was absent before. */
function fromZero(keys: readonly string[], counts: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([...keys.map((key) => [key, 0] as const), ...counts]);
}

function increase(counts: Map<string, number>, key: string, by = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
