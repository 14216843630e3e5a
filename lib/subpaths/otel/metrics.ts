import {
  createNoopMeter,
  metrics,
  type Attributes,
  type Counter,
  type Histogram,
  type Meter,
  type MeterProvider,
  type Observable,
} from '@opentelemetry/api';
import { countedName } from '../../contract/stats.js';
import type { TelemetrySource, TracedAdd, TracedEnd, TracedRun } from '../../options/telemetry.js';
import { LIBRARY, messaging } from './attributes.js';

/** Bounds of histograms in seconds, as the conventions advise. */
const CALL_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const WAIT_BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 21_600];

/** Metrics of this process, and with `global` also of all queues. */
export class WorkMeter {
  private readonly operation: Histogram;
  private readonly process: Histogram;
  private readonly wait: Histogram;
  private readonly sent: Counter;
  private readonly consumed: Counter;
  private readonly outcomes: Counter;
  /** By queue: the first names of jobs. Jobs with further names are counted without a name. */
  private readonly names = new Map<string, Set<string>>();

  /**
   * Null if nobody records metrics. Call it only when the global provider exists: unlike tracers, meters of the API do not wait for
   * it.
   */
  static of(provider: MeterProvider = metrics.getMeterProvider()): WorkMeter | null {
    const meter = provider.getMeter(LIBRARY);
    return meter === createNoopMeter() ? null : new WorkMeter(meter);
  }

  private constructor(private readonly meter: Meter) {
    const seconds = (description: string, bounds: number[]) => ({
      unit: 's',
      description,
      advice: { explicitBucketBoundaries: bounds },
    });
    const messages = (description: string) => ({ unit: '{message}', description });
    this.operation = meter.createHistogram(
      'messaging.client.operation.duration',
      seconds('Duration of the calls that add jobs.', CALL_BOUNDS),
    );
    this.process = meter.createHistogram(
      'messaging.process.duration',
      seconds('How long runs of jobs took.', CALL_BOUNDS),
    );
    this.wait = meter.createHistogram(
      'godwit.job.wait.duration',
      seconds('How long jobs waited for their first run, from when they could have run.', WAIT_BOUNDS),
    );
    this.sent = meter.createCounter(
      'messaging.client.sent.messages',
      messages('Jobs that this process added, or tried to add.'),
    );
    this.consumed = meter.createCounter(
      'messaging.client.consumed.messages',
      messages('Jobs that were handed over to handlers.'),
    );
    this.outcomes = meter.createCounter('godwit.job.outcomes', {
      unit: '{job}',
      description: 'Runs that ended, and jobs that could not run, by outcome.',
    });
  }

  /** Called when a call that adds jobs has ended. @param errorType what it failed with. */
  added({ queue, count }: TracedAdd, seconds: number, errorType: string | undefined): void {
    const attributes = withError(messaging(queue, 'add', 'send'), errorType);
    this.operation.record(seconds, attributes);
    this.sent.add(count ?? 1, attributes);
  }

  began({ queue, waitedMs }: TracedRun): void {
    const attributes = messaging(queue, 'process', 'process');
    this.consumed.add(1, attributes);
    if (waitedMs !== undefined) this.wait.record(waitedMs / 1_000, attributes);
  }

  ended(queue: string, name: string, { outcome, hasRun, durationUs, reason, failure }: TracedEnd): void {
    const attributes: Attributes = {
      ...messaging(queue, 'process', 'process'),
      ...(this.isNamed(queue, name) && { 'godwit.job.name': name }),
    };
    this.outcomes.add(1, {
      ...attributes,
      'godwit.job.outcome': outcome,
      ...(reason !== null && { 'godwit.dead.reason': reason }),
    });
    if (hasRun) this.process.record(durationUs / 1e6, withError(attributes, failure?.name));
  }

  /** Producers can add any name, and the SDK keeps a series for each set of attributes. */
  private isNamed(queue: string, name: string): boolean {
    let names = this.names.get(queue);
    if (!names) this.names.set(queue, (names = new Set()));
    const counted = countedName(name, names);
    names.add(counted);
    return counted !== '';
  }

  /** @param isGlobal whether the state of all queues is also observed. Returns a function that ends the observation. */
  observe(source: TelemetrySource, isGlobal: boolean): () => void {
    const { meter } = this;
    const running = meter.createObservableGauge('godwit.worker.running', {
      unit: '{job}',
      description: 'Jobs that run in this process.',
    });
    const slots = meter.createObservableGauge('godwit.worker.slots', {
      unit: '{job}',
      description: 'Jobs that this process can run at once for the queue.',
    });
    const jobs = meter.createObservableGauge('godwit.queue.jobs', {
      unit: '{job}',
      description: 'Jobs of a queue, by state.',
    });
    const oldest = meter.createObservableGauge('godwit.queue.oldest_waiting', {
      unit: 's',
      description: 'For how long the oldest waiting job could have run; 0 if nothing waits.',
    });
    const local: Parameters<Meter['addBatchObservableCallback']> = [
      (result) => {
        for (const { queue, running: now, slots: all } of source.load()) {
          const attributes = { 'messaging.destination.name': queue };
          result.observe(running, now, attributes);
          result.observe(slots, all, attributes);
        }
      },
      [running, slots] as Observable[],
    ];
    const global: typeof local = [
      async (result) => {
        for (const { name, counts, oldestWaitingMs } of await source.queues()) {
          const attributes = { 'messaging.destination.name': name };
          for (const [state, count] of Object.entries(counts))
            result.observe(jobs, count, { ...attributes, 'godwit.job.state': state });
          result.observe(oldest, (oldestWaitingMs ?? 0) / 1_000, attributes);
        }
      },
      [jobs, oldest] as Observable[],
    ];
    const all = isGlobal ? [local, global] : [local];
    for (const callback of all) meter.addBatchObservableCallback(...callback);
    return () => {
      for (const callback of all) meter.removeBatchObservableCallback(...callback);
    };
  }
}

function withError(attributes: Attributes, errorType: string | undefined): Attributes {
  return errorType === undefined ? attributes : { ...attributes, 'error.type': errorType };
}
