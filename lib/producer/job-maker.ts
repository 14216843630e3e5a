import type { EnqueueJob } from '../engine/engine.js';
import { validatePayload, type JobDefinition } from '../job/define-job.js';
import { checkJobId, checkJobName, generateId } from '../job/job-id.js';
import { encodeBody } from '../job/job-record.js';
import { encodePayload } from '../job/payload.js';
import type { Replication } from '../options/durability.js';
import { checkJobOptions, type JobOptions } from '../options/job-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';

/** What the caller wants added, before anything is checked. */
export interface JobRequest {
  readonly name: string;
  readonly data: unknown;
  readonly options?: JobOptions | undefined;
  /** What the caller wrote, where `options` is not that. */
  readonly given?: object;
}

/** A job as the store takes it, and what must be known of it before its `add` resolves. */
export interface MadeJob extends EnqueueJob {
  /** Null: that the primary has it. */
  readonly replication: Replication | null;
  /** As the caller wrote them, for those who look on. */
  readonly given?: object | undefined;
}

/** Checks a request and writes it as the store takes it. Throws a typed error that names the place; nothing is stored. */
export function makeJob(
  queue: ResolvedQueueOptions,
  request: JobRequest,
  now: number,
  path: string,
): MadeJob {
  const name = checkJobName(request.name);
  const { id, delayMs, dueAt, priority, durability, ...policy } = checkJobOptions(
    request.options,
    `${path}.options`,
  );
  const data = encodePayload(request.data, `${path}.data`, queue.maxPayloadBytes);
  const createdAt = Math.floor(now);
  const body = encodeBody(name, createdAt, { ...policy, delayMs, dueAt, priority }, data);
  return {
    id: id === undefined ? generateId(createdAt) : checkJobId(id),
    name,
    body,
    replication: durability === undefined ? queue.durability : durability,
    given: request.given ?? request.options,
    ...(delayMs !== undefined && { delayMs }),
    ...(dueAt !== undefined && { dueAt }),
    ...(priority !== undefined && { priority }),
  };
}

/**
 * Refuses data that the schema of the definition does not take. The data is stored as it was given: what the schema makes
 * of it is made once, where it is handled, since few transformations may be applied to their own outcome.
 *
 * @throws {SchemaViolationError}
 */
export async function checkSchema<Input>(
  definition: JobDefinition<Input, unknown>,
  data: Input,
): Promise<void> {
  await validatePayload(definition, data);
}
