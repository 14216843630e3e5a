import type { QueueEvent } from '../events/queue-event.js';
import { InvalidOptionError } from '../errors.js';
import { isDefinition, type AnyDefinition, type InputOf } from '../job/define-job.js';
import type { FilteredJob, Matches } from './hands.js';
import type { AddedJob, JobRun, RunOutcome } from './records.js';

/**
 * Which jobs: those of a name, of a definition, or those for which the function answers true.
 *
 * @example
 * testing.queue('email').added('welcome');
 * testing.queue('email').runNext((job) => job.data.to === 'ada@example.com');
 */
export type JobFilter = string | AnyDefinition | ((job: FilteredJob) => boolean);

/** What `drain` and `advance` may be told. */
export interface DrainOptions {
  /** More runs than this in one call are taken for work without end: 1 to 10,000,000 jobs. @default 1000 */
  readonly limit?: number;
}

/** What one queue of a test is made of. */
export interface TestQueueParts {
  added(): readonly AddedJob[];
  runs(): readonly JobRun[];
  events(): QueueEvent[];
  runNext(what: string, matches: Matches | undefined): Promise<JobRun>;
  drain(what: string, options: DrainOptions | undefined): Promise<JobRun[]>;
  clear(): Promise<void>;
}

/**
 * One queue as a test sees it: `testing.queue('email')`. What it tells is what was stored and settled, so a duplicate is not among
 * what was added, nor a run that lost its job among what completed.
 *
 * @example
 * const email = testing.queue('email');
 * await producer.add('email', 'welcome', { to: 'ada@example.com' });
 * expect(email.added()).toMatchObject([{ name: 'welcome', data: { to: 'ada@example.com' } }]);
 * await email.drain();
 * expect(email.completed()).toHaveLength(1);
 */
export class TestQueue {
  /** @internal */
  constructor(
    /** Its name. */
    readonly name: string,
    private readonly parts: TestQueueParts,
  ) {}

  /**
   * The jobs added so far, in their order, those that schedules have made among them.
   *
   * @throws {InvalidOptionError} where the filter is none
   * @example
   * expect(testing.queue('email').added('welcome')).toMatchObject([{ data: { to: 'ada@example.com' }, options: { delay: '10m' } }]);
   */
  added<D extends AnyDefinition>(only: D): AddedJob<InputOf<D>>[];
  added(only?: JobFilter): AddedJob[];
  added(only?: JobFilter): AddedJob[] {
    return pick(this.parts.added(), only, 'added()');
  }

  /**
   * Every run so far in the order in which they ended, whatever became of it.
   *
   * @throws {InvalidOptionError} where the filter is none
   */
  runs(only?: JobFilter): JobRun[] {
    return pick(this.parts.runs(), only, 'runs()');
  }

  /** The runs that completed. */
  completed(only?: JobFilter): JobRun[] {
    return this.ended(['completed'], only, 'completed()');
  }

  /** The runs that failed: those after which the job is tried again, and those after which it is dead. */
  failed(only?: JobFilter): JobRun[] {
    return this.ended(['retrying', 'dead'], only, 'failed()');
  }

  /** The runs after which the job was dead, and the jobs that died without one. */
  dead(only?: JobFilter): JobRun[] {
    return this.ended(['dead'], only, 'dead()');
  }

  /** What was said of this queue, as `QueueEvents` tells it, as far as the queue keeps its events. */
  events(): QueueEvent[] {
    return this.parts.events();
  }

  /**
   * Runs the next waiting job, or the next one that the filter fits, as a worker would: handler, schema, guards, interceptors, pipes,
   * filters, scope. Resolves when it is settled; an error of the handler is in the answer.
   *
   * @throws {QueueTestingError} where none waits, and says what there is instead; where the queue has no processor; and where workers
   *   run by themselves
   * @throws {InvalidOptionError} where the filter is none
   * @example
   * expect(await testing.queue('email').runNext()).toMatchObject({ outcome: 'completed', result: 'sent' });
   * expect(await testing.queue('email').runNext('welcome')).toMatchObject({ outcome: 'retrying', attempt: 1, delay: 1000 });
   */
  async runNext(only?: JobFilter): Promise<JobRun> {
    return this.parts.runNext('runNext()', only === undefined ? undefined : matcher(only, 'runNext()'));
  }

  /**
   * Runs one job after the other until none waits, those added meanwhile too. Time stands still: what is delayed, a retry among it,
   * stays so until `testing.advance`.
   *
   * @throws {QueueTestingError} beyond `limit` runs, where the queue has no processor, and where workers run by themselves
   * @throws {InvalidOptionError} where the limit is none
   */
  drain(options?: DrainOptions): Promise<JobRun[]> {
    return this.parts.drain('drain()', options);
  }

  /** Forgets everything: jobs, whatever their state, and all that is told here. Schedules from code stay. Never rejects. */
  clear(): Promise<void> {
    return this.parts.clear();
  }

  private ended(outcomes: readonly RunOutcome[], only: JobFilter | undefined, what: string): JobRun[] {
    return pick(this.parts.runs(), only, what).filter(({ outcome }) => outcomes.includes(outcome));
  }
}

function pick<Item extends FilteredJob>(
  items: readonly Item[],
  only: JobFilter | undefined,
  what: string,
): Item[] {
  return only === undefined ? [...items] : items.filter(matcher(only, what));
}

function matcher(only: JobFilter, what: string): Matches {
  if (typeof only === 'function') return only;
  if (typeof only === 'string') return ({ name }) => name === only;
  if (isDefinition(only)) return ({ name }) => name === only.name;
  throw new InvalidOptionError(`the filter of ${what}`, 'a job name, a job definition or a function', only);
}
