import { isDefinition, type AnyDefinition } from '../job/define-job.js';
import type { JobOptions } from '../options/job-options.js';
import type { QueueTelemetry, TracedJob } from '../options/telemetry.js';
import type { BulkItem, BulkJob, WaitOptions } from './add-arguments.js';
import type { AddResult } from './add-result.js';
import { Queue } from './queue.js';

const ofOne = (result: AddResult): readonly TracedJob[] => [result];
const ofMany = (results: readonly AddResult[]): readonly TracedJob[] => results;
/** `addAndWait` resolves to the result of the handler, so there is no id to put into the trace. */
const ofNone = (): readonly TracedJob[] => [];

/** A queue that traces its adds. It is used only if telemetry is configured, so other queues have no overhead. */
class TracedQueue extends Queue {
  constructor(
    private readonly telemetry: QueueTelemetry,
    ...parts: ConstructorParameters<typeof Queue>
  ) {
    super(...parts);
  }

  override add(job: any, data: any, options?: JobOptions): Promise<AddResult> {
    return this.telemetry.adding(
      { queue: this.name, name: nameOf(job), count: null, awaits: false },
      () => super.add(job, data, options),
      ofOne,
    );
  }

  override addBulk(
    jobs: readonly BulkJob[] | AnyDefinition,
    items?: readonly BulkItem<any>[],
  ): Promise<AddResult[]> {
    const list: unknown = items ?? jobs;
    return this.telemetry.adding(
      {
        queue: this.name,
        name: items ? nameOf(jobs) : null,
        count: Array.isArray(list) ? list.length : 0,
        awaits: false,
      },
      () => super.addBulk(jobs as AnyDefinition, items as readonly BulkItem<any>[]),
      ofMany,
    );
  }

  override addAndWait(job: any, data: any, ...rest: any[]): Promise<any> {
    return this.telemetry.adding(
      { queue: this.name, name: nameOf(job), count: null, awaits: true },
      () => super.addAndWait(job, data, ...(rest as [WaitOptions])),
      ofNone,
    );
  }
}

/** The arguments have not been checked yet, so the job may be anything. */
function nameOf(job: unknown): string | null {
  if (typeof job === 'string') return job;
  return isDefinition(job) ? job.name : null;
}

/** Creates the handle of a queue; it traces adds if there is telemetry. */
export function createQueue(
  telemetry: QueueTelemetry | undefined,
  ...parts: ConstructorParameters<typeof Queue>
): Queue {
  return telemetry ? new TracedQueue(telemetry, ...parts) : new Queue(...parts);
}
