import { types } from 'node:util';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { queuePlan, type PlannedHandler, type PoolPlan } from '../handlers/discovery/handler.registry.js';
import { wrappedHandler } from '../handlers/wrapped.js';
import { InvalidOptionError } from '../errors.js';
import { hasFields } from '../job/fields.js';
import type { Job } from '../job/job.js';
import { checkJobName } from '../job/job-id.js';
import { ANY_NAME, isPattern, normalized } from '../job/name-pattern.js';
import { field, readable, refuse, shape } from '../options/check.js';
import { DEFAULT_CONCURRENCY, readConcurrency, type WrapHook } from '../options/worker-options.js';

/**
 * The handlers for `QueueRuntime.work`: one function for all jobs, or functions by job name or pattern, such as `email.*`.
 *
 * @example
 * const handlers: JobHandlers = { welcome: (job) => `hello ${job.data.to}`, 'report.*': (job) => job.name };
 */
export type JobHandlers = ((job: Job<any>) => unknown) | Readonly<Record<string, (job: Job<any>) => unknown>>;

/** Options of `QueueRuntime.work`. */
export interface WorkOptions {
  /** How many jobs this process runs at once for the queue: 1 to 10,000. @default `worker.concurrency` of the queue, else 10 */
  readonly concurrency?: number;
}

/** A worker that was started with `QueueRuntime.work`. */
export interface QueueWorker extends AsyncDisposable {
  /** Name of the queue. */
  readonly queue: string;
  /**
   * Stops the worker as `QueueRuntime.stop` stops all workers: no further jobs are claimed, running jobs may finish within
   * `shutdown.timeout`, and the rest is given back. Then another worker can be started for the queue. Never rejects. May be
   * called twice.
   */
  stop(): Promise<void>;
}

const readWork = shape({ concurrency: field('concurrency', readConcurrency) });

/**
 * The plan of a pool for these handlers.
 *
 * @throws {InvalidOptionError | InvalidJobNameError}
 */
export function planWorker(
  queue: Pick<ResolvedQueueOptions, 'name' | 'concurrency'>,
  given: unknown,
  options: unknown,
  hooks: readonly WrapHook[],
): PoolPlan {
  const place = `work('${queue.name}')`;
  const { concurrency = queue.concurrency ?? DEFAULT_CONCURRENCY } = readWork(options, place, refuse) ?? {};
  const handlers = entriesOf(given, place).map(([jobName, handler]): PlannedHandler => {
    const isByPattern = isPattern(jobName);
    return {
      jobName: isByPattern ? normalized(jobName) : jobName,
      isPattern: isByPattern,
      label: `${place}['${jobName}']`,
      run: wrappedHandler(hooks, (job) => handler(job)),
    };
  });
  const found: string[] = [];
  const plan = queuePlan({ queue: queue.name, weight: 1, handlers }, [], found);
  const [fault] = found;
  if (fault !== undefined)
    throw new InvalidOptionError(place, 'handlers of which one fits each name', given, fault);
  return { order: 'strict', concurrency, queues: [plan] };
}

function entriesOf(given: unknown, place: string): [string, (job: Job<any>) => unknown][] {
  if (isHandler(given)) return [[ANY_NAME, given]];
  const entries = readable(given, place, () =>
    hasFields(given) && !Array.isArray(given) ? Object.entries(given) : [],
  );
  if (entries.length === 0)
    throw new InvalidOptionError(
      place,
      'a function, or an object of functions by job name, and no generator',
      given,
    );
  return entries.map(([name, handler]) => {
    checkJobName(name);
    if (!isHandler(handler))
      throw new InvalidOptionError(
        `${place}['${name}']`,
        'a function that takes a job, and no generator',
        handler,
      );
    return [name, handler];
  });
}

/** A call of a generator returns before its body runs. */
function isHandler(given: unknown): given is (job: Job<any>) => unknown {
  return typeof given === 'function' && !types.isGeneratorFunction(given);
}
