import type { QueueEvent } from '../../events/queue-event.js';
import { InvalidOptionError } from '../../errors.js';
import { isDefinition, type AnyDefinition, type InputOf } from '../../job/define-job.js';
import type { FilteredJob, Matches } from './manual-workers.js';
import type { AddedJob, JobRun, RunOutcome } from './records.js';

/**
 * Selects jobs: by name, by definition, or with a function that returns true for them.
 *
 * @example
 * testing.queue('email').added('welcome');
 * testing.queue('email').runNext((job) => job.data.to === 'ada@example.com');
 */
export type JobFilter = string | AnyDefinition | ((job: FilteredJob) => boolean);

/** Options of `drain` and `advance`. */
export interface DrainOptions {
  /** Maximum number of runs in one call, 1 to 10,000,000; more are taken for an endless loop. @default 1000 */
  readonly limit?: number;
}

/** The functions that `TestQueue` is built on. */
interface TestQueueParts {
  added(): readonly AddedJob[];
  runs(): readonly JobRun[];
  events(): QueueEvent[];
  runNext(what: string, matches: Matches | undefined): Promise<JobRun>;
  drain(what: string, options: DrainOptions | undefined): Promise<JobRun[]>;
  clear(): Promise<void>;
}

/**
 * One queue in a test: `testing.queue('email')`. It shows what was stored and settled: duplicates are not among the added jobs, and
 * runs that lost their job are not among the completed ones.
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
   * The jobs added so far, in order, including those of schedules.
   *
   * @throws {InvalidOptionError} for an invalid filter
   * @example
   * expect(testing.queue('email').added('welcome')).toMatchObject([{ data: { to: 'ada@example.com' }, options: { delay: '10m' } }]);
   */
  added<D extends AnyDefinition>(only: D): AddedJob<InputOf<D>>[];
  added(only?: JobFilter): AddedJob[];
  added(only?: JobFilter): AddedJob[] {
    return pick(this.parts.added(), only, 'added()');
  }

  /**
   * Every run so far, in the order in which they ended.
   *
   * @throws {InvalidOptionError} for an invalid filter
   */
  runs(only?: JobFilter): JobRun[] {
    return pick(this.parts.runs(), only, 'runs()');
  }

  /** The runs that completed. */
  completed(only?: JobFilter): JobRun[] {
    return this.ended(['completed'], only, 'completed()');
  }

  /** The runs that failed, whether or not the job is retried. */
  failed(only?: JobFilter): JobRun[] {
    return this.ended(['retrying', 'dead'], only, 'failed()');
  }

  /** The last runs of dead jobs, and jobs that died without a run. */
  dead(only?: JobFilter): JobRun[] {
    return this.ended(['dead'], only, 'dead()');
  }

  /** The events of this queue that are still kept. */
  events(): QueueEvent[] {
    return this.parts.events();
  }

  /**
   * Runs the next waiting job, or the next one that matches the filter, as a worker would: with schema, guards, interceptors, pipes,
   * filters and scope. Resolves when it is settled; an error of the handler is in the result.
   *
   * @throws {QueueTestingError} if no job waits (the message describes the queue's state), if the queue has no processor, or
   *   with `autoStart: true`
   * @throws {InvalidOptionError} for an invalid filter
   * @example
   * expect(await testing.queue('email').runNext()).toMatchObject({ outcome: 'completed', result: 'sent' });
   * expect(await testing.queue('email').runNext('welcome')).toMatchObject({ outcome: 'retrying', attempt: 1, delay: 1000 });
   */
  async runNext(only?: JobFilter): Promise<JobRun> {
    return this.parts.runNext('runNext()', only === undefined ? undefined : matcher(only, 'runNext()'));
  }

  /**
   * Runs one job after the other until none waits, including jobs added meanwhile. The clock does not move: delayed jobs and retries
   * stay delayed until `testing.advance`.
   *
   * @throws {QueueTestingError} after more than `limit` runs, if the queue has no processor, or with `autoStart: true`
   * @throws {InvalidOptionError} for an invalid limit
   */
  drain(options?: DrainOptions): Promise<JobRun[]> {
    return this.parts.drain('drain()', options);
  }

  /** Deletes all jobs and everything that is recorded here. Schedules from code stay. Never rejects. */
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
