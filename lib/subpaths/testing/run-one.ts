import type { Type } from '@nestjs/common';
import { readProcessorMark } from '../../decorators/metadata.js';
import type { ClaimedJob } from '../../contract/engine.js';
import { InvalidOptionError, type JobAbortedError } from '../../errors.js';
import { isDefinition, type AnyDefinition } from '../../job/define-job.js';
import type { SettledRun } from '../../job/outcome.js';
import { quoted } from '../../job/text.js';
import { copyFields, integer, refuse } from '../../options/check.js';
import { JOB_OPTION_NAMES, type JobOptions } from '../../options/job-options.js';
import type { ResolvedQueueOptions } from '../../options/module-options.js';
import { makeDefinedJob, makeJob } from '../../producer/job-maker.js';
import type { Handler, HandlerEntry } from '../../worker/handler.js';
import type { Run } from '../../worker/run.js';
import { WatchedRunner, type ManualWorkers } from './manual-workers.js';
import type { Ending } from './records.js';
import { QueueTestingError } from './test-bench.js';

/** Options of `testing.run`: those of a job, and the number and signal of the attempt. */
export interface RunOptions extends JobOptions {
  /** Number of the attempt, 1 to 1,000,000. @default 1 */
  readonly attempt?: number;
  /** When this signal aborts, `job.signal` aborts as for a cancelled job. @default none */
  readonly signal?: AbortSignal;
}

/** The arguments of `run` after checking. */
interface RunRequest {
  /** A queue, or the class of a processor. */
  readonly where: unknown;
  /** The name of a job, or a definition. */
  readonly job: string | AnyDefinition;
  readonly data: unknown;
  readonly options: RunOptions;
}

const RUN_OPTION_NAMES = [...JOB_OPTION_NAMES, 'attempt', 'signal'];
const checkAttempt = integer(1, 1_000_000);

/** Reads the arguments of `run(definition, data, options)` and of `run(where, job, data, options)`. */
export function readRun(args: readonly unknown[]): RunRequest {
  const [first, second] = args;
  if (isDefinition(first)) {
    return { where: first.queue, job: first, data: second, options: optionsOf(args[2]) };
  }
  if (typeof second !== 'string' && !isDefinition(second))
    throw new InvalidOptionError('run()', 'given a job name or a job', second);
  return { where: first, job: second, data: args[2], options: optionsOf(args[3]) };
}

function optionsOf(given: unknown): RunOptions {
  return given === undefined ? {} : copyFields(given, 'run().options', RUN_OPTION_NAMES);
}

/**
 * Runs one handler in the same way as for a claimed job, without storing anything. Resolves with what it returns, rejects with
 * what it throws.
 */
export class LoneRun {
  constructor(
    private readonly workers: ManualWorkers,
    private readonly optionsOf: (queue: string) => ResolvedQueueOptions,
    private readonly now: () => number,
  ) {}

  async start({ where, job, data, options }: RunRequest): Promise<unknown> {
    const { queue, handler } = this.find(where, typeof job === 'string' ? job : job.name);
    const { attempt = 1, signal, ...jobOptions } = options;
    checkAttempt(attempt, 'run().options.attempt', refuse);
    if (signal !== undefined && !(signal instanceof AbortSignal))
      throw new InvalidOptionError('run().options.signal', 'an AbortSignal', signal);
    const now = this.now();
    const { id, body } =
      typeof job === 'string'
        ? makeJob(queue, { name: job, data, options: jobOptions }, now, 'run()')
        : await makeDefinedJob(queue, job, { data, options: jobOptions }, now, 'run()');
    return runOnce({ id, body, failed: attempt - 1, stalls: 0 }, queue, handler, now, signal);
  }

  private find(where: unknown, name: string): { queue: ResolvedQueueOptions; handler: HandlerEntry } {
    if (typeof where === 'string') {
      const queue = this.optionsOf(where);
      return { queue, handler: this.handlerOf(where, name) };
    }
    const type = typeof where === 'function' ? (where as Type) : undefined;
    if (!type || !readProcessorMark(type)) {
      throw new InvalidOptionError('run()', 'given a queue, a class with @Processor or a job', where);
    }
    const queues = this.workers.queues;
    const label = `${type.name}.`;
    const found = queues.find((queue) => this.workers.finderOf(queue)(name)?.label.startsWith(label));
    if (found === undefined) {
      throw new QueueTestingError(
        `run(): ${type.name} is not among the providers of this module, or has no handler for ${quoted(name)}`,
      );
    }
    return { queue: this.optionsOf(found), handler: this.handlerOf(found, name) };
  }

  private handlerOf(queue: string, name: string): HandlerEntry {
    const handler = this.workers.finderOf(queue)(name);
    if (handler) return handler;
    throw new QueueTestingError(`run(): no handler of queue '${queue}' is for jobs named ${quoted(name)}`);
  }
}

async function runOnce(
  job: ClaimedJob,
  queue: ResolvedQueueOptions,
  handler: HandlerEntry,
  now: number,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  let abort!: () => JobAbortedError;
  const run: Handler = (handled) => {
    abort = () => (handled as Run).abort('cancelled', reasonOf(signal!));
    if (signal?.aborted) throw abort();
    signal?.addEventListener('abort', abort, { once: true });
    return handler.run(handled);
  };
  const [{ outcome }, ending] = await new Promise<[SettledRun, Ending]>((resolve) => {
    const parts = {
      queue,
      find: () => ({ ...handler, run }),
      now: () => now,
      note: async () => true,
      charge: async () => {},
    };
    new WatchedRunner(parts, (...ended) => resolve(ended)).start(job);
  });
  signal?.removeEventListener('abort', abort);
  if (outcome.kind === 'completed') return ending.result;
  if ('error' in ending) throw ending.error;
  throw new QueueTestingError(`run(): ${outcome.kind === 'dead' ? outcome.failure.message : outcome.kind}`);
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : String(reason);
}
