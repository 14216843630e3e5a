import { setTimeout as pause } from 'node:timers/promises';
import type { Type } from '@nestjs/common';
import { HandleBatch } from '#lib/decorators/handle-batch.decorator.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { UnrecoverableError } from '#lib/errors.js';
import { RateLimited, Snooze, type Job } from '#lib/job/job.js';
import type { JobEventOf } from '#lib/worker/job-listeners.js';
import { bootQueue, type Logs, type QueueApp } from '../support/queue-app.js';
import type { TestRedis } from '../support/redis.js';
import type { AppPlan, Plan, QueuePlan } from './plan.js';
import type { Task, Watch } from './watch.js';

/** What every application of a run has in common. */
export interface Stage {
  readonly redis: Pick<TestRedis, 'url' | 'prefix' | 'keys'>;
  readonly plan: Plan;
  readonly watch: Watch;
  readonly logs: Logs;
}

/** Does what the task of a job says, and returns its number. */
async function work(watch: Watch, job: Job<Task | Task[]>): Promise<number> {
  // A job with several items does what the first says.
  const task = Array.isArray(job.data) ? job.data[0]! : job.data;
  const run = watch.recordOf(job.queue, job.id).runs;
  // A job that ran out of time in its first run does not in the next.
  const ms = run === 1 ? task.ms : 1;
  await pause(ms, undefined, task.isDeaf ? {} : { signal: job.signal });
  if (task.call) await call(watch, job, task, task.call);
  if (run > task.fails) return task.n;
  if (task.fault === 'unrecoverable') throw new UnrecoverableError('on purpose');
  if (task.fault === 'limited') throw new RateLimited(20, { scope: job.group === null ? 'queue' : 'group' });
  if (task.fault === 'snooze') throw new Snooze(15);
  throw new Error('on purpose');
}

async function call(watch: Watch, job: Job<Task | Task[]>, task: Task, what: Task['call']): Promise<void> {
  if (what === 'progress') return job.progress({ n: task.n });
  if (what === 'log') return job.log(`number ${task.n}`);
  if (what === 'charge') return job.charge(1 + (task.n % 5));
  if (Array.isArray(job.data)) return;
  const revision = watch.nextRevision();
  await job.update({ ...task, revision });
  watch.revised(job.queue, job.id, revision);
}

function runnerOf(watch: Watch) {
  return async (job: Job<Task>) => {
    watch.begins(job);
    let isOver = false;
    const end = () => {
      if (!isOver) watch.ends(job);
      isOver = true;
    };
    // From now on the job may run elsewhere, even if the handler continues.
    job.signal.addEventListener('abort', end);
    try {
      return await work(watch, job);
    } finally {
      end();
    }
  };
}

/** Runs the jobs of one more queue in an application. */
export function workOn({ watch }: Stage, { runtime }: QueueApp, queue: string, concurrency: number) {
  return runtime.work(queue, runnerOf(watch), { concurrency });
}

function processorOf(watch: Watch, queues: readonly QueuePlan[], app: AppPlan): Type {
  const run = runnerOf(watch);
  class SoakProcessor {
    one(job: Job<Task>) {
      return run(job);
    }

    many(jobs: Job<Task>[]) {
      return Promise.allSettled(jobs.map((job) => run(job)));
    }

    onEnd({ type, job }: JobEventOf<'completed' | 'dead'>) {
      watch.recordOf(job.queue, job.id).received.push(type);
    }
  }
  const { prototype } = SoakProcessor;
  const methodOf = (key: 'one' | 'many' | 'onEnd') => Object.getOwnPropertyDescriptor(prototype, key)!;
  Handle('*')(prototype, 'one', methodOf('one'));
  OnJob(['completed', 'dead'])(prototype, 'onEnd', methodOf('onEnd'));
  const batch = queues.every((queue) => queue.batch) ? queues[0]!.batch : null;
  if (batch) HandleBatch('batch', { ...batch, timeout: 30 })(prototype, 'many', methodOf('many'));
  const names = queues.map(({ name }) => name);
  const { weights, concurrency } = app;
  Processor(weights ? Object.fromEntries(names.map((name, i) => [name, weights[i]!])) : names, {
    concurrency,
  })(SoakProcessor);
  return SoakProcessor;
}

/** @param app null: an application that only adds jobs. */
export function bootSoakApp({ redis, plan, watch, logs }: Stage, app: AppPlan | null): Promise<QueueApp> {
  const runs = plan.queues.filter(({ name }) => app?.runs.includes(name));
  const pools = app?.isOnePool ? [runs] : runs.map((queue) => [queue]);
  return bootQueue(redis, {
    root: {
      limits: plan.shared,
      defaults: { backoff: { type: 'fixed', delay: 10 } },
      ...(app?.shutdown && { shutdown: app.shutdown }),
    },
    queues: plan.queues.map(({ order: _, batch: __, ...options }) => options),
    providers: app ? pools.map((queues) => processorOf(watch, queues, app)) : [],
    watch: false,
    logs,
  });
}
