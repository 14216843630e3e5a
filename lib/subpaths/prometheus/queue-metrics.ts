import type { LinkEvent } from '../../contract/engine.js';
import type { WorkLoad } from '../../module/queue.runtime.js';
import { VERSION } from '../../worker/registrar.js';
import { QueueGauges, type GaugeSource } from './queue-gauges.js';
import {
  isOpenMetrics,
  linesOf,
  OPENMETRICS_TYPE,
  render,
  TEXT_TYPE,
  type Family,
  type Labels,
  type MetricInfo,
} from './text.js';
import { WorkMetrics } from './work-metrics.js';

const INFO = {
  running: {
    name: 'godwit_running_jobs',
    type: 'gauge',
    help: 'Jobs that run in this process.',
  },
  slots: {
    name: 'godwit_worker_slots',
    type: 'gauge',
    help: 'Jobs that this process can run at once, by the queues that share them.',
  },
  oldest: {
    name: 'godwit_oldest_run_seconds',
    type: 'gauge',
    help: 'How long the longest run of this process has taken so far.',
  },
  up: { name: 'godwit_redis_up', type: 'gauge', help: '1 if the connection of this process is up, by role.' },
  reconnects: {
    name: 'godwit_redis_reconnects_total',
    type: 'counter',
    help: 'How often a connection of this process came up again.',
  },
  build: { name: 'godwit_build_info', type: 'gauge', help: '1; the labels have the versions.' },
} as const satisfies Record<string, MetricInfo>;

/** Metrics that must not hide a process whose connection is down. */
const LOWEST: ReadonlySet<string> = new Set([INFO.up.name, 'godwit_collect_success']);
/** Metrics of a process that must not be added up, as those of the state of all queues. */
const HIGHEST: ReadonlySet<string> = new Set([INFO.oldest.name, INFO.build.name]);

/** A registry of `prom-client` or `@prometheus-io/client`. */
export interface MetricRegistry {
  /** Like `Registry.registerMetric`. */
  registerMetric(metric: any): void;
}

/** One connection of this process. */
interface LinkCounts {
  readonly labels: Labels;
  up: boolean;
  reconnects: number;
}

/** The sources of a page of metrics. */
interface MetricsParts {
  readonly inspector: GaugeSource;
  /** Whether to read the state of all queues. */
  readonly global: boolean;
  /** Whether there are metrics of the work of this process. @default true */
  readonly local?: boolean;
  readonly load?: () => readonly WorkLoad[];
  readonly server?: () => string | null;
}

/**
 * The metrics of this process and of all queues, in the text format of Prometheus. Inject it where `QueueMetricsModule` is
 * imported, for a page of your own.
 *
 * @example
 * constructor(private readonly metrics: QueueMetrics) {}
 * ;@Get('internal/metrics') page() { return this.metrics.text(); }
 */
export class QueueMetrics {
  /** @internal */
  readonly work = new WorkMetrics();
  private readonly gauges: QueueGauges | undefined;
  private readonly links = new Map<string, LinkCounts>();

  /** @internal */
  constructor(private readonly parts: MetricsParts) {
    if (parts.global) this.gauges = new QueueGauges(parts.inspector);
  }

  /**
   * The page. Never rejects, and resolves within 2 s, also if Redis does not answer: then the metrics of the queues are missing
   * and `godwit_collect_success` is 0.
   *
   * @param accept the header of the request; one that names `application/openmetrics-text` gets that format.
   * @example
   * const page = await metrics.text(); // for a handler of GET /metrics
   */
  async text(accept?: string): Promise<string> {
    return render(await this.families(), isOpenMetrics(accept));
  }

  /** The `Content-Type` of `text(accept)`. */
  contentType(accept?: string): string {
    return isOpenMetrics(accept) ? OPENMETRICS_TYPE : TEXT_TYPE;
  }

  /**
   * Adds all metrics to a registry of `prom-client` or `@prometheus-io/client`, for applications that have one page for
   * everything. They are read when the registry is. In a Node cluster, the registry of the primary process adds up only what each
   * process counts for itself.
   *
   * @example
   * metrics.toRegistry(register); // import { register } from 'prom-client'
   */
  toRegistry(registry: MetricRegistry): void {
    for (const { name, help, type } of this.everyMetric()) {
      const aggregator = this.aggregatorOf(name);
      const read = async () => {
        const family = (await this.families()).find((one) => one.name === name);
        const values = family ? linesOf(family) : [];
        return {
          name,
          help,
          type,
          aggregator,
          values: values.map(({ name: metricName, labels, value }) => ({ metricName, labels, value })),
        };
      };
      registry.registerMetric({ name, help, type, aggregator, get: read, reset: () => undefined });
    }
  }

  /** How a registry combines the values of several processes. */
  private aggregatorOf(name: string): 'sum' | 'min' | 'max' {
    if (LOWEST.has(name)) return 'min';
    const isGlobal = this.gauges?.infos.some((info) => info.name === name) ?? false;
    return isGlobal || HIGHEST.has(name) ? 'max' : 'sum';
  }

  /** @internal A connection went up or down. */
  linked({ role, state, config }: LinkEvent): void {
    const key = JSON.stringify([role, config]);
    const known = this.links.get(key);
    if (!known) {
      const labels = { role, ...(config !== undefined && { config }) };
      this.links.set(key, { labels, up: state === 'up', reconnects: 0 });
      return;
    }
    if (state === 'up' && !known.up) known.reconnects += 1;
    known.up = state === 'up';
  }

  /** @internal Names, types and help texts of all metrics. */
  everyMetric(): MetricInfo[] {
    return [...this.local([]), ...this.work.families(), ...(this.gauges ? this.gauges.infos : [])];
  }

  private async families(): Promise<Family[]> {
    const global = (await this.gauges?.families()) ?? [];
    if (this.parts.local === false) return global;
    const load = this.parts.load?.() ?? [];
    const served = load.map(({ queue }) => queue);
    return [...global, ...this.local(load), ...this.work.families(served)];
  }

  private local(load: readonly WorkLoad[]): Family[] {
    const perQueue = (read: (one: WorkLoad) => number) =>
      load.map((one) => ({ labels: { queue: one.queue }, value: read(one) }));
    const pools = new Map(load.map(({ pool, slots }) => [pool, slots]));
    const links = [...this.links.values()];
    return [
      { ...INFO.running, samples: perQueue(({ running }) => running) },
      { ...INFO.slots, samples: Array.from(pools, ([pool, value]) => ({ labels: { pool }, value })) },
      { ...INFO.oldest, samples: perQueue(({ oldestMs }) => oldestMs / 1000) },
      {
        ...INFO.up,
        samples: links.map(({ labels, up }) => ({ labels, value: Number(up) })),
      },
      {
        ...INFO.reconnects,
        samples: links.map(({ labels, reconnects }) => ({ labels, value: reconnects })),
      },
      {
        ...INFO.build,
        samples: [
          {
            labels: {
              version: VERSION,
              node: process.versions.node,
              server: this.parts.server?.() ?? '',
            },
            value: 1,
          },
        ],
      },
    ];
  }
}
