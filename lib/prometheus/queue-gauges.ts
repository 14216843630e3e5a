import { within } from '../contract/retry.js';
import type { QueueInfo, QueueInspector, WorkerInfo } from '../inspect/queue-inspector.js';
import type { Family, MetricInfo, Sample } from './text.js';

/** Two scrapers share an answer. */
const CACHE_MS = 1_000;
/** A page must not wait longer for Redis. */
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
  processes: { name: 'godwit_processes', type: 'gauge', help: 'Worker processes of the prefix, by state.' },
  success: {
    name: 'godwit_collect_success',
    type: 'gauge',
    help: '1 if Redis answered for the metrics of the queues, 0 if they are missing on this page.',
  },
  duration: {
    name: 'godwit_collect_duration_seconds',
    type: 'gauge',
    help: 'How long Redis took to answer for the metrics of the queues.',
  },
} as const satisfies Record<string, MetricInfo>;

const PROCESS_STATES = ['running', 'paused', 'draining'] as const;

/** Reads the state of all queues of a prefix, the same from every process. */
export class QueueGauges {
  private last: { readonly at: number; readonly families: Promise<Family[]> } | undefined;

  constructor(private readonly inspector: Pick<QueueInspector, 'queues' | 'workers'>) {}

  readonly infos: readonly MetricInfo[] = Object.values(INFO);

  /** Never rejects: if Redis does not answer in time, there are no gauges but `godwit_collect_success 0`. */
  families(): Promise<Family[]> {
    const now = performance.now();
    if (!this.last || now - this.last.at >= CACHE_MS) this.last = { at: now, families: this.read() };
    return this.last.families;
  }

  private async read(): Promise<Family[]> {
    const start = performance.now();
    let found: readonly [QueueInfo[], WorkerInfo[]] | undefined;
    const asked = Promise.all([this.inspector.queues(), this.inspector.workers()]).then((answer) => {
      found = answer;
    });
    await within(LIMIT_MS, asked);
    const seconds = (performance.now() - start) / 1000;
    return [
      ...(found ? familiesOf(...found) : []),
      { ...INFO.success, samples: [{ labels: {}, value: found ? 1 : 0 }] },
      { ...INFO.duration, samples: [{ labels: {}, value: Math.round(seconds * 1e6) / 1e6 }] },
    ];
  }
}

function familiesOf(queues: readonly QueueInfo[], workers: readonly WorkerInfo[]): Family[] {
  const perQueue = (read: (queue: QueueInfo) => number): Sample[] =>
    queues.map((queue) => ({ labels: { queue: queue.name }, value: read(queue) }));
  const poolsOf = (name: string) =>
    workers
      .filter(({ state }) => state !== 'draining')
      .map(({ pools }) =>
        pools.filter(({ queues: served, paused }) => served.includes(name) && !paused.includes(name)),
      );
  return [
    {
      ...INFO.jobs,
      samples: queues.flatMap(({ name, counts }) =>
        Object.entries(counts).map(([state, value]) => ({ labels: { queue: name, state }, value })),
      ),
    },
    { ...INFO.oldest, samples: perQueue(({ oldestWaitingMs }) => (oldestWaitingMs ?? 0) / 1000) },
    { ...INFO.paused, samples: perQueue(({ paused }) => Number(paused)) },
    {
      ...INFO.workers,
      samples: perQueue(({ name }) => poolsOf(name).filter((pools) => pools.length > 0).length),
    },
    {
      ...INFO.slots,
      samples: perQueue(({ name }) =>
        poolsOf(name)
          .flat()
          .reduce((sum, { concurrency }) => sum + concurrency, 0),
      ),
    },
    {
      ...INFO.processes,
      samples: PROCESS_STATES.map((state) => ({
        labels: { state },
        value: workers.filter((worker) => worker.state === state).length,
      })),
    },
  ];
}
