// How fast a worker process is while people watch it, against one that nobody watches, in turn:
//   npm run test:watched -- [--jobs 3000000] [--rounds 3] [--by tracing,metrics,overview,jobs,live] [--sampler]
// The watched process traces 1 % of its runs, serves metrics, which are collected every second, and a dashboard with two
// open overviews, a list of jobs that is refreshed every three seconds, and live events. With --sampler the SDK chooses the
// runs that are traced. Ends with 1 if the median is below 0.9 of the other.
import 'reflect-metadata';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { NestFactory } from '@nestjs/core';
import {
  BatchSpanProcessor,
  NodeTracerProvider,
  TraceIdRatioBasedSampler,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-node';
import { QueueDashboardModule } from '#lib/subpaths/dashboard.js';
import { Handle, Processor, QueueModule } from '#lib/index.js';
import { otel } from '#lib/subpaths/otel.js';
import { QueueMetricsModule } from '#lib/subpaths/prometheus.js';
import { createProducer } from '#lib/subpaths/standalone.js';
import { startRedis } from '../../tools/redis.mjs';

const LEAST = 0.9;
const SECOND_MS = 1_000;
const STEP = 1_000;

const { values } = parseArgs({
  options: {
    // Takes about ten seconds. In a shorter run, compiling the code would cost the most.
    jobs: { type: 'string', default: '3000000' },
    rounds: { type: 'string', default: '3' },
    worker: { type: 'string' },
    watched: { type: 'boolean' },
    sampler: { type: 'boolean' },
    by: { type: 'string', default: 'tracing,metrics,overview,jobs,live' },
  },
});
const JOBS = Number(values.jobs);
const BY = values.by.split(',');
interface Run {
  readonly rate: number;
  /** CPU time of the worker process per job. */
  readonly cpuUs: number;
}

/** These jobs are not measured: they compile the code. */
const WARM = Math.floor(JOBS / 5);

/** The events that the watchers of all rounds have received. */
const received = { answers: 0, batches: 0 };

if (values.worker === undefined) await compare();
else await work(values.worker);

async function compare(): Promise<void> {
  const server = await startRedis({ private: true });
  const runs = { alone: [] as Run[], watched: [] as Run[] };
  try {
    for (let round = 0; round < Number(values.rounds); round++)
      for (const how of ['alone', 'watched'] as const) runs[how].push(await runOf(server.url, how));
  } finally {
    await server.stop();
  }
  const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]!;
  const rateOf = (all: readonly Run[]) => median(all.map(({ rate }) => rate));
  const { answers, batches } = received;
  console.log(`watched by ${answers} answers and ${batches} batches of the live stream`);
  const asks = BY.some((one) => ['metrics', 'overview', 'jobs'].includes(one));
  if ((asks && answers === 0) || (BY.includes('live') && batches === 0)) throw new Error('nobody watched');
  for (const [how, all] of Object.entries(runs)) {
    const cpu = median(all.map(({ cpuUs }) => cpuUs)).toFixed(1);
    const each = all.map(({ rate }) => rate).join(', ');
    console.log(`${how.padEnd(8)} ${rateOf(all)} jobs/s (${each}), ${cpu} µs of CPU per job`);
  }
  const ratio = rateOf(runs.watched) / rateOf(runs.alone);
  console.log(`watched / alone: ${ratio.toFixed(2)}`);
  process.exitCode = ratio < LEAST ? 1 : 0;
}

async function runOf(url: string, how: 'alone' | 'watched'): Promise<Run> {
  const producer = createProducer({ connection: url, prefix: 'watched' });
  for (let from = 0; from < JOBS; from += STEP)
    await producer
      .queue('work')
      .addBulk(Array.from({ length: STEP }, (_, i) => ({ name: 'job', data: { n: from + i } })));
  await producer.close();
  const args = [
    '--worker',
    url,
    '--jobs',
    String(JOBS),
    '--by',
    values.by,
    ...(values.sampler ? ['--sampler'] : []),
    ...(how === 'watched' ? ['--watched'] : []),
  ];
  const child = fork(fileURLToPath(import.meta.url), args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const exited = once(child, 'exit');
  const end = new AbortController();
  try {
    for (;;) {
      const [message] = (await once(child, 'message')) as [{ port?: number; run?: Run }];
      if (message.port !== undefined) watch(message.port, end.signal);
      if (message.run !== undefined) return message.run;
    }
  } finally {
    end.abort();
    child.kill();
    await exited;
  }
}

/** The requests of people and of Prometheus while they watch. */
function watch(port: number, signal: AbortSignal): void {
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/${path}`, { signal });
    await answer.text();
    received.answers += 1;
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  };
  const every = (ms: number, path: string) => {
    const ask = () =>
      void get(path).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    const timer = setInterval(ask, ms);
    signal.addEventListener('abort', () => clearInterval(timer));
    ask();
  };
  if (BY.includes('metrics')) every(SECOND_MS, 'metrics');
  const pages = [
    ...(BY.includes('overview') ? ['overview', 'overview'] : []),
    ...(BY.includes('jobs') ? ['queues/work/jobs?state=waiting'] : []),
  ];
  for (const path of pages) every(3 * SECOND_MS, `queues/api/v1/${path}`);
  if (BY.includes('live'))
    void follow(port, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
}

/** Reads the live stream, as the page does. */
async function follow(port: number, signal: AbortSignal): Promise<void> {
  const { ok, status, body } = await fetch(`http://127.0.0.1:${port}/queues/api/v1/events`, { signal });
  if (!ok || !body) throw new Error(`events: ${status}`);
  for await (const text of body.pipeThrough(new TextDecoderStream()))
    received.batches += text.split('\ndata:').length - 1;
}

/** Traces 1 % of the runs, and discards the spans. */
function tracing() {
  const exporter: SpanExporter = {
    export: (_, done) => done({ code: 0 }),
    shutdown: async () => {},
  };
  const sampler = new TraceIdRatioBasedSampler(values.sampler ? 0.01 : 1);
  new NodeTracerProvider({ sampler, spanProcessors: [new BatchSpanProcessor(exporter)] }).register();
  return otel({ ratio: values.sampler ? 1 : 0.01 });
}

async function work(url: string): Promise<void> {
  let done = 0;
  let since = 0;
  let usage = process.cpuUsage();
  class Work {
    async run(): Promise<void> {
      if (++done === WARM) {
        since = performance.now();
        usage = process.cpuUsage();
      }
      if (done !== JOBS) return;
      const jobs = JOBS - WARM;
      const { user, system } = process.cpuUsage(usage);
      const rate = Math.round((jobs / (performance.now() - since)) * SECOND_MS);
      process.send!({ run: { rate, cpuUs: (user + system) / jobs } satisfies Run });
    }
  }
  Processor('work', { concurrency: 100 })(Work);
  Handle('job')(Work.prototype, 'run', Object.getOwnPropertyDescriptor(Work.prototype, 'run')!);
  class Root {}
  const isTraced = values.watched === true && BY.includes('tracing');
  const imports = [
    QueueModule.forRoot({
      connection: url,
      prefix: 'watched',
      log: false,
      ...(isTraced && { telemetry: tracing() }),
    }),
    QueueModule.registerQueue({ name: 'work' }),
  ];
  if (values.watched !== true) {
    await NestFactory.createApplicationContext(
      { module: Root, imports, providers: [Work] },
      { logger: ['error'] },
    );
    return;
  }
  const watched = [QueueMetricsModule.forRoot({}), QueueDashboardModule.forRoot({ access: 'public' })];
  const app = await NestFactory.create(
    { module: Root, imports: [...imports, ...watched], providers: [Work] },
    { logger: ['error'] },
  );
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  process.send!({ port });
}
