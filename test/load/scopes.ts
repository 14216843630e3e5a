// Measures the cost of making a processor for each job or for each tenant, and whether memory stays:
//   npm run test:scopes -- [--jobs 100000]
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { Inject, Injectable, Scope, UseGuards } from '@nestjs/common';
import { ContextIdFactory, type ContextId } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { QUEUE_ENGINE, WORKER_SERVICES } from '#lib/decorators/metadata.js';
import type { PoolPlan } from '#lib/handlers/discovery/handler.registry.js';
import { Handle, JOB_REF, Processor, QueueModule, type Job } from '#lib/index.js';
import type { HandledJob, Handler } from '#lib/worker/handler.js';

type TenantJob = Job<{ tenant: number }>;

@Injectable({ scope: Scope.REQUEST })
class Tenant {
  constructor(@Inject(JOB_REF) readonly job: TenantJob) {}
}
@Injectable({ scope: Scope.REQUEST })
class RequestGuard {
  canActivate = () => true;
}
@Injectable({ scope: Scope.REQUEST, durable: true })
class Database {
  constructor(@Inject(JOB_REF) readonly of: unknown) {}
}
@Injectable()
class StaticGuard {
  canActivate = () => true;
}

@Processor('static')
class Static {
  @Handle()
  run(job: TenantJob) {
    return job.data.tenant;
  }
}
@Processor('bare', { scope: Scope.REQUEST })
class Bare {
  @Handle()
  run(job: TenantJob) {
    return job.data.tenant;
  }
}
@Processor('request')
class PerJob {
  constructor(readonly tenant: Tenant) {}
  @Handle()
  run() {
    return this.tenant.job.data.tenant;
  }
}
@Processor('request-guarded')
class PerJobGuarded {
  constructor(readonly tenant: Tenant) {}
  @UseGuards(StaticGuard)
  @Handle()
  run() {
    return this.tenant.job.data.tenant;
  }
}
@Processor('request-guard')
class WithRequestGuard {
  @UseGuards(RequestGuard)
  @Handle()
  run(job: TenantJob) {
    return job.data.tenant;
  }
}
@Processor('durable', { scope: Scope.REQUEST, durable: true })
class PerTenant {
  constructor(readonly database: Database) {}
  @Handle()
  run(job: TenantJob) {
    return job.data.tenant;
  }
}
@Processor('durable-guarded', { scope: Scope.REQUEST, durable: true })
class PerTenantGuarded {
  constructor(readonly database: Database) {}
  @UseGuards(StaticGuard)
  @Handle()
  run(job: TenantJob) {
    return job.data.tenant;
  }
}

const trees = Array.from({ length: 10 }, () => ContextIdFactory.create());
ContextIdFactory.apply({
  attach: (contextId: ContextId, { data: { tenant } }: TenantJob) => ({
    resolve: ({ isTreeDurable }: { isTreeDurable: boolean }) => (isTreeDurable ? trees[tenant]! : contextId),
    payload: { tenant },
  }),
});

/** The handlers that discovery makes, by queue. Nothing is connected. */
async function handlersOf(processors: Record<string, new (...args: any[]) => object>) {
  const handlers = new Map<string, Handler>();
  const nothing = async () => undefined;
  const module = await Test.createTestingModule({
    imports: [
      QueueModule.forRoot(),
      QueueModule.registerQueue(...Object.keys(processors).map((name) => ({ name }))),
    ],
    providers: [Tenant, Database, ...Object.values(processors)],
  })
    .setLogger(false as never)
    .overrideProvider(QUEUE_ENGINE)
    .useValue({
      open: async () => true,
      close: nothing,
      onLink: () => () => undefined,
      onWarning: () => undefined,
    })
    .overrideProvider(WORKER_SERVICES)
    .useValue(() => ({
      declare: nothing,
      withdraw: nothing,
      removePool: nothing,
      report: nothing,
      stop: nothing,
      createPools({ queues }: PoolPlan) {
        for (const { queue, find } of queues) handlers.set(queue, find('job')!.run);
        return [];
      },
    }))
    .compile();
  await module.init();
  return { handlers, close: () => module.close() };
}

/** Jobs that look like those of a pool. */
async function runJobs(handler: Handler, count: number, ballast?: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const data = {
      tenant: i % 10,
      ballast: ballast === undefined ? null : Array.from({ length: ballast }, () => i),
    };
    const job = { id: String(i), name: 'job', queue: 'q', data, stage: undefined } as unknown as HandledJob;
    await handler(job);
  }
}

const heap = () => {
  globalThis.gc!();
  return process.memoryUsage().heapUsed;
};
const { jobs } = parseArgs({ options: { jobs: { type: 'string', default: '100000' } } }).values;
const count = Number(jobs);
const { version } = createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string };
const { handlers, close } = await handlersOf({
  static: Static,
  bare: Bare,
  request: PerJob,
  'request-guarded': PerJobGuarded,
  'request-guard': WithRequestGuard,
  durable: PerTenant,
  'durable-guarded': PerTenantGuarded,
});
console.log(`Nest ${version}, Node ${process.version}, ${count} jobs each`);
const BALLAST = 128; // numbers, 1 KiB: a job that stays is seen
for (const [queue, handler] of handlers) {
  await runJobs(handler, count / 10);
  const costs: number[] = [];
  for (let round = 0; round < 5; round++) {
    const before = process.cpuUsage();
    await runJobs(handler, count / 5);
    const { user, system } = process.cpuUsage(before);
    costs.push((user + system) / (count / 5));
  }
  const median = costs.toSorted((a, b) => a - b)[2]!;
  const sizes = [heap()];
  for (let round = 0; round < 5; round++) {
    await runJobs(handler, count / 5, BALLAST);
    sizes.push(heap());
  }
  const grown = sizes.map((size) => ((size - sizes[0]!) / 1024).toFixed(0)).join(' ');
  console.log(`${queue.padEnd(16)} ${median.toFixed(2).padStart(6)} µs of CPU a job; heap, KiB: ${grown}`);
}
await close();
