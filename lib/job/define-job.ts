import type { StandardSchemaV1 } from '@standard-schema/spec';
import { InvalidOptionError, type PayloadIssue, SchemaViolationError } from '../errors.js';
import { checkJobName, checkQueueName } from './job-id.js';
import type { Job } from './job.js';

/**
 * A kind of job: where it goes, which handler it is for, and what its data is. `Input` is what the producer gives,
 * `Output` what the handler receives; they differ where the schema has defaults or coercions.
 */
export interface JobDefinition<Input = unknown, Output = Input> {
  readonly queue: string;
  readonly name: string;
  /** Absent where only the type was given. */
  readonly schema?: StandardSchemaV1<Input, Output>;
}

/** What the handler of a definition receives: `JobOf<typeof welcome>`. */
export type JobOf<Definition extends JobDefinition<any, any>> = Job<OutputOf<Definition>>;

/** What the producer gives for a definition. */
export type InputOf<Definition extends JobDefinition<any, any>> =
  Definition extends JobDefinition<infer Input, any> ? Input : never;

/** The data a handler of a definition receives. */
export type OutputOf<Definition extends JobDefinition<any, any>> =
  Definition extends JobDefinition<any, infer Output> ? Output : never;

/**
 * Names a kind of job once, for producers and handlers. The data is described by any Standard Schema (zod, valibot,
 * arktype and others), which is checked on both sides, or by a type alone.
 *
 * @example
 * export const welcome = defineJob('email', 'welcome', z.object({ to: z.email() }));
 * export const purge = defineJob<{ olderThan: string }>('email', 'purge');
 *
 * @throws {InvalidQueueNameError}
 * @throws {InvalidJobNameError}
 * @throws {InvalidOptionError} where the third argument is no Standard Schema.
 */
export function defineJob<Schema extends StandardSchemaV1>(
  queue: string,
  name: string,
  schema: Schema,
): JobDefinition<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>>;
export function defineJob<Data = unknown>(queue: string, name: string): JobDefinition<Data, Data>;
export function defineJob(queue: string, name: string, ...rest: [schema?: unknown]): JobDefinition {
  checkQueueName(queue);
  checkJobName(name);
  if (rest.length === 0) return Object.freeze({ queue, name });
  // An explicit undefined is refused too: a schema that is not there yet (a circular import) must not be lost silently.
  const [schema] = rest;
  if (!isStandardSchema(schema)) {
    throw new InvalidOptionError(
      `the schema of defineJob('${queue}', ${JSON.stringify(name)})`,
      'a Standard Schema (zod 3.24+, valibot 1+, arktype 2+ and others) or left out',
      schema,
    );
  }
  return Object.freeze({ queue, name, schema });
}

function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  // Schemas of arktype are functions.
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as Partial<StandardSchemaV1>)['~standard'];
  return standard?.version === 1 && typeof standard.validate === 'function';
}

/**
 * The data as the schema gives it back, with defaults and coercions applied; the data itself where there is no schema.
 * A promise only where the schema needs one.
 *
 * @throws {SchemaViolationError} with every issue, by rejecting where it answers a promise.
 */
export function validatePayload<Output>(
  definition: JobDefinition<any, Output>,
  data: unknown,
): Output | Promise<Output> {
  if (definition.schema === undefined) return data as Output;
  const result = definition.schema['~standard'].validate(data);
  if (isPromise(result)) return result.then((settled) => valueOf(definition, settled));
  return valueOf(definition, result);
}

/** A promise of another realm is one too. */
function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>>).then === 'function';
}

function valueOf<Output>(
  { queue, name }: JobDefinition<any, Output>,
  result: StandardSchemaV1.Result<Output>,
): Output {
  if (result.issues) throw new SchemaViolationError(queue, name, result.issues.map(readIssue));
  return result.value;
}

function readIssue({ message, path = [] }: StandardSchemaV1.Issue): PayloadIssue {
  const steps = path.map((step) => String(typeof step === 'object' ? step.key : step));
  return { message, path: steps.join('.') };
}

/** Whether it is what `defineJob` returns. */
export function isDefinition(value: unknown): value is JobDefinition<any, any> {
  try {
    return typeof value === 'object' && value !== null && 'queue' in value && 'name' in value;
  } catch {
    // A revoked proxy throws whatever is asked of it.
    return false;
  }
}
