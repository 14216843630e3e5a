import { setTimeout as pause } from 'node:timers/promises';
import type { Type } from '@nestjs/common';
import { HandleBatch } from '#lib/decorators/handle-batch.decorator.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { OnJob } from '#lib/decorators/on-job.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { UnrecoverableError } from '#lib/errors.js';
import { RateLimited, Snooze, type Job } from '#lib/job/job.js';
import type { QueueModuleOptions, QueueOptions } from '#lib/options/module-options.js';
import type { JobEventOf } from '#lib/worker/job-listeners.js';
import type { AppPlan, Plan, QueuePlan } from './plan.js';
import { chargeOf } from './jobs.js';
import type { Task } from './watch.js';

/** Learns of the runs of an application, also from another process. */
export interface Witness {
  /** Returns which run of the job it is, from 1. */
  begins(job: Job<Task>): number;
  ends(job: Job<Task>): void;
  /** The data of a job was changed. */
  revised(queue: string, id: string, revision: number): void;
  /** An `@OnJob` method was called. */
  received(queue: string, id: string, end: string): void;
}

/** Does what the task of a job says, and returns its number. */
async function work(witness: Witness, job: Job<Task | Task[]>, run: number): Promise<number> {
  // A job with several items does what the first says.
  const task = Array.isArray(job.data) ? job.data[0]! : job.data;
  // A job that ran out of time in its first run does not in the next.
  const ms = run === 1 ? task.ms : 1;
  await pause(ms, undefined, task.isDeaf ? {} : { signal: job.signal });
  if (task.call) await call(witness, job, task);
  if (run > task.fails) return task.n;
  if (task.fault === 'unrecoverable') throw new UnrecoverableError('on purpose');
  if (task.fault === 'limited') throw new RateLimited(20, { scope: job.group === null ? 'queue' : 'group' });
  if (task.fault === 'snooze') throw new Snooze(15);
  throw new Error('on purpose');
}

async function call(witness: Witness, job: Job<Task | Task[]>, task: Task): Promise<void> {
  if (task.call === 'progress') return job.progress({ n: task.n });
  if (task.call === 'log') return job.log(`number ${task.n}`);
  if (task.call === 'charge') return job.charge(chargeOf(task));
  if (Array.isArray(job.data)) return;
  // Changes by others are whole numbers.
  const revision = task.revision + 0.01;
  await job.update({ ...task, revision });
  witness.revised(job.queue, job.id, revision);
}

export function runnerOf(witness: Witness) {
  return async (job: Job<Task>) => {
    const run = witness.begins(job);
    let isOver = false;
    const end = () => {
      if (!isOver) witness.ends(job);
      isOver = true;
    };
    // From now on the job may run elsewhere, even if the handler continues.
    job.signal.addEventListener('abort', end);
    try {
      return await work(witness, job, run);
    } finally {
      end();
    }
  };
}

function processorOf(witness: Witness, queues: readonly QueuePlan[], app: AppPlan): Type {
  const run = runnerOf(witness);
  class SoakProcessor {
    one(job: Job<Task>) {
      return run(job);
    }

    many(jobs: Job<Task>[]) {
      return Promise.allSettled(jobs.map((job) => run(job)));
    }

    onEnd({ type, job }: JobEventOf<'completed' | 'dead'>) {
      witness.received(job.queue, job.id, type);
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
export function optionsOf(plan: Plan, witness: Witness, app: AppPlan | null) {
  const runs = plan.queues.filter(({ name }) => app?.runs.includes(name));
  const pools = app?.isOnePool ? [runs] : runs.map((queue) => [queue]);
  const root: QueueModuleOptions = {
    limits: plan.shared,
    defaults: { backoff: { type: 'fixed', delay: 10 } },
    ...(plan.leaseMs !== undefined && { lease: { duration: plan.leaseMs } }),
    ...(app?.shutdown && { shutdown: app.shutdown }),
  };
  const queues: QueueOptions[] = plan.queues.map(({ order: _, batch: __, ...options }) => options);
  return { root, queues, providers: app ? pools.map((its) => processorOf(witness, its, app)) : [] };
}
