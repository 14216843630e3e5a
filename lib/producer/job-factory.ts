import { InvalidOptionError } from '../errors.js';
import { checkDefinition, type AnyDefinition } from '../job/define-job.js';
import { quoted, type Path } from '../job/text.js';
import { readable } from '../options/check.js';
import type { JobOptions } from '../options/job-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { BulkItem, BulkJob } from './add-arguments.js';
import { checkEntries, entryPath, naming, namingEntry } from './bulk.js';
import { makeDefinedJob, makeJob, type JobRequest, type MadeJob } from './job-maker.js';

const ENTRY_FIELDS = ['name', 'data', 'options'];
const ITEM_FIELDS = ['data', 'options'];

/** Creates the jobs of one queue from the arguments of its handle. */
export class JobFactory {
  constructor(
    private readonly options: ResolvedQueueOptions,
    /** The clock of the store. */
    private readonly now: () => number,
  ) {}

  /** @throws {InvalidOptionError} if it is defined for another queue */
  async ofDefinition(
    given: AnyDefinition,
    data: unknown,
    options: JobOptions | undefined,
    path: string,
    awaited = false,
  ): Promise<MadeJob> {
    const job = this.ownDefinition(given, path);
    return makeDefinedJob(this.options, job, { data, options, awaited }, this.now(), path);
  }

  /** The jobs of one definition. */
  async ofItems(given: AnyDefinition, items: readonly BulkItem<unknown>[]): Promise<readonly MadeJob[]> {
    const job = this.ownDefinition(given, 'addBulk()');
    const now = this.now();
    return Promise.all(
      checkEntries(items, ITEM_FIELDS).map((item, i) =>
        namingEntry(i, async () => {
          const path = entryPath(i);
          const request = readable(item, path, () => ({ data: item.data, options: item.options }));
          return makeDefinedJob(this.options, job, request, now, path);
        }),
      ),
    );
  }

  /** The jobs of any names. */
  ofEntries(jobs: readonly BulkJob[]): readonly MadeJob[] {
    const now = this.now();
    const entries = checkEntries(jobs, ENTRY_FIELDS);
    const made: MadeJob[] = [];
    const path = () => entryPath(made.length);
    try {
      for (const entry of entries) made.push(makeJob(this.options, readEntry(entry, path), now, path));
    } catch (error) {
      throw naming(made.length, error);
    }
    return made;
  }

  /** @throws {InvalidOptionError} unless it is a definition of this queue. */
  ownDefinition(given: AnyDefinition, path: string): AnyDefinition {
    const job = checkDefinition(given, path);
    const { name } = this.options;
    if (job.queue === name) return job;
    throw new InvalidOptionError(
      path,
      `a job of queue '${name}'`,
      given,
      `${path}: job ${quoted(job.name)} is defined for queue '${job.queue}', and this is the handle of queue '${name}'; ` +
        'use the handle of that queue, or QueueProducer',
    );
  }
}

function readEntry(job: BulkJob, path: Path): JobRequest {
  return readable(job, path, () => ({ name: job.name, data: job.data, options: job.options }));
}
