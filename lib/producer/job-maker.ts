import type { EnqueueJob } from '../engine/engine.js';
import type { AnyDefinition } from '../job/define-job.js';
import { checkJobId, checkJobName, generateId } from '../job/job-id.js';
import { encodeBody, NO_DATA } from '../job/job-record.js';
import { encodePayload } from '../job/payload.js';
import { checkGiven } from '../job/validate.js';
import type { Replication } from '../options/durability.js';
import { checkJobOptions, type JobOptions } from '../options/job-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';

/** What the caller wants added, before anything is checked. */
export interface JobRequest {
  readonly name: string;
  readonly data: unknown;
  readonly options?: JobOptions | undefined;
}

/** A job as the store takes it, and what must be known of it before its `add` resolves. */
export interface MadeJob extends EnqueueJob {
  /** Null: that the primary has it. */
  readonly replication: Replication | null;
  /** As the caller wrote them, for those who look on. */
  readonly given?: object | undefined;
}

/**
 * Checks a request and writes it as the store takes it. Throws a typed error that names the place; nothing is stored.
 *
 * @param json the data where it is encoded already.
 */
export function makeJob(
  queue: ResolvedQueueOptions,
  request: JobRequest,
  now: number,
  path: string,
  json?: string,
): MadeJob {
  const name = checkJobName(request.name);
  const { id, delayMs, dueAt, priority, durability, ...policy } = checkJobOptions(
    request.options,
    `${path}.options`,
  );
  const data = json ?? encodePayload(request.data, `${path}.data`, queue.maxPayloadBytes);
  const createdAt = Math.floor(now);
  const body = encodeBody(name, createdAt, { ...policy, delayMs, dueAt, priority }, data);
  return {
    id: id === undefined ? generateId(createdAt) : checkJobId(id),
    name,
    body,
    replication: durability === undefined ? queue.durability : durability,
    given: request.options,
    ...(delayMs !== undefined && { delayMs }),
    ...(dueAt !== undefined && { dueAt }),
    ...(priority !== undefined && { priority }),
  };
}

/**
 * The same for a definition: its schema is asked first. Where the schema takes undefined, as one with a default does, there may
 * be no data.
 *
 * @throws {SchemaViolationError}
 */
export async function makeDefinedJob(
  queue: ResolvedQueueOptions,
  definition: AnyDefinition,
  { data, options }: Omit<JobRequest, 'name'>,
  now: number,
  path: string,
): Promise<MadeJob> {
  const isNone = data === undefined && definition.schema !== undefined;
  const json = isNone ? NO_DATA : encodePayload(data, `${path}.data`, queue.maxPayloadBytes);
  await checkGiven(definition, data, isNone ? undefined : json);
  return makeJob(queue, { name: definition.name, data, options }, now, path, json);
}
