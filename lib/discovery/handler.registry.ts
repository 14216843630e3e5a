import type { HandlerMark } from '../decorators/metadata.js';
import { showHandle } from '../decorators/metadata.js';
import { UnknownQueueError, show } from '../errors.js';
import { checkJobName, checkQueueName } from '../job/job-id.js';
import { collectFaults } from '../options/check.js';
import { checkProcessorOptions } from '../options/module-options.js';
import type { FindHandler, Handler, HandlerEntry } from '../worker/handler.js';
import { faults } from './faults.js';
import type { FoundMethod, FoundProcessor } from './processor.explorer.js';

/** A handler and the jobs it is for. */
export interface PlannedHandler extends HandlerEntry {
  /** Null for the catch-all. */
  readonly jobName: string | null;
}

/** What one pool of this process is made from: all processors of a queue together. */
export interface QueuePlan {
  readonly queue: string;
  readonly concurrency: number;
  readonly handlers: readonly PlannedHandler[];
  /** The handler of that name, else the catch-all, else undefined. */
  readonly find: FindHandler;
}

/**
 * Joins the processors of each queue to one plan, and says everything that does not fit.
 *
 * @param known Names of the registered queues.
 */
export function planQueues(
  processors: readonly FoundProcessor[],
  known: readonly string[],
): { plans: QueuePlan[]; faults: string[] } {
  const found: string[] = [];
  const members = new Map<string, { processor: FoundProcessor; handlers: PlannedHandler[] }[]>();
  for (const processor of processors) {
    const queue = queueOf(processor, known, found);
    if (queue === undefined) continue;
    const handlers = processor.methods.flatMap((method) => entriesOf(processor, method, queue, found));
    if (processor.methods.length === 0) found.push(faults.noHandlers(processor.className, queue));
    members.set(queue, [...(members.get(queue) ?? []), { processor, handlers }]);
  }
  const plans = [...members].map(([queue, group]) => {
    const concurrency = concurrencyOf(
      queue,
      group.map((member) => member.processor),
      found,
    );
    return planOf(
      queue,
      concurrency,
      group.flatMap((member) => member.handlers),
      found,
    );
  });
  return { plans, faults: found };
}

function queueOf(
  { className, mark }: FoundProcessor,
  known: readonly string[],
  found: string[],
): string | undefined {
  if (typeof mark.queue === 'object' && mark.queue !== null) {
    found.push(faults.severalQueues(className, show(mark.queue)));
    return undefined;
  }
  const place = `@Processor of ${className}`;
  const queue = attempt(place, found, () => checkQueueName(mark.queue));
  if (queue === undefined) return undefined;
  if (known.includes(queue)) return queue;
  found.push(faults.argument(place, new UnknownQueueError(queue, known).message));
  return undefined;
}

function entriesOf(
  processor: FoundProcessor,
  method: FoundMethod,
  queue: string,
  found: string[],
): PlannedHandler[] {
  const { className, instance } = processor;
  const label = `${className}.${method.name}`;
  // Looked up at each call, so that a test may replace the method on the instance.
  const run: Handler = (job) => instance[method.name](job);
  const entry = (mark: HandlerMark): PlannedHandler[] => {
    const { definition } = mark;
    if (definition && definition.queue !== queue) {
      found.push(faults.otherQueue(label, definition.name, definition.queue, className, queue));
      return [];
    }
    const jobName =
      mark.jobName === null
        ? null
        : attempt(`${showHandle(mark)} on ${label}`, found, () => checkJobName(mark.jobName));
    if (jobName === undefined) return [];
    return [{ jobName, label, run, ...(definition && { definition }) }];
  };
  return method.marks.flatMap(entry);
}

/** Several processors of a queue form one pool, so they may not contradict each other. */
function concurrencyOf(queue: string, processors: readonly FoundProcessor[], found: string[]): number {
  const asked: { className: string; concurrency: number }[] = [];
  for (const { className, mark } of processors) {
    const path = `@Processor('${queue}') of ${className}`;
    const checked = collectFaults((report) => checkProcessorOptions(mark.options, path, report));
    found.push(...checked.faults);
    const given = checked.faults.length === 0 && mark.options.concurrency !== undefined;
    if (given) asked.push({ className, concurrency: checked.value.concurrency });
  }
  if (new Set(asked.map((one) => one.concurrency)).size > 1)
    found.push(faults.concurrencyConflict(queue, asked));
  return asked[0]?.concurrency ?? checkProcessorOptions(undefined, '').concurrency;
}

function planOf(
  queue: string,
  concurrency: number,
  handlers: readonly PlannedHandler[],
  found: string[],
): QueuePlan {
  const byName = new Map<string | null, PlannedHandler[]>();
  for (const entry of handlers) byName.set(entry.jobName, [...(byName.get(entry.jobName) ?? []), entry]);
  for (const [jobName, entries] of byName) {
    if (entries.length === 1) continue;
    const places = entries.map((entry) => entry.label);
    found.push(
      jobName === null
        ? faults.duplicateCatchAll(queue, places)
        : faults.duplicateHandler(queue, jobName, places),
    );
  }
  const named = new Map(handlers.map((entry) => [entry.jobName, entry]));
  return {
    queue,
    concurrency,
    handlers,
    find: (jobName) => named.get(jobName) ?? named.get(null),
  };
}

/** The answer of a check, or undefined with what it objects to added to the faults. */
function attempt<T>(place: string, found: string[], check: () => T): T | undefined {
  try {
    return check();
  } catch (error) {
    found.push(faults.argument(place, error instanceof Error ? error.message : String(error)));
    return undefined;
  }
}
