import type { StandardSchemaV1 } from '@standard-schema/spec';
import { InvalidOptionError, type PayloadIssue, type SchemaSide, SchemaViolationError } from '../errors.js';
import { schemaPath, type JobDefinition } from './define-job.js';
import { isThenable } from './thenable.js';

/**
 * The output of the schema, with defaults and coercions applied; without a schema, the data itself. A promise only if the schema is
 * asynchronous.
 *
 * @throws {SchemaViolationError} with every issue, by rejecting where it answers a promise.
 * @throws whatever code of the schema throws.
 */
export function validatePayload<Output>(
  definition: JobDefinition<any, Output, any, any>,
  data: unknown,
  side: SchemaSide,
): Output | Promise<Output> {
  if (definition.schema === undefined) return data as Output;
  const result = definition.schema['~standard'].validate(data);
  if (isThenable(result)) return result.then((settled) => valueOf(definition, settled, side));
  return valueOf(definition, result, side);
}

/**
 * Refuses data that the handler of the definition would not take: what JSON gives back of it is checked. What the schema makes
 * of it is made where it is handled, once, since few transformations may be applied to their own outcome.
 *
 * @param json the text of the data; undefined where there is none.
 * @throws {SchemaViolationError} in words about the data as it was given, where already that does not match.
 */
export async function checkGiven(
  definition: JobDefinition<any, any, any, any>,
  data: unknown,
  json: string | undefined,
): Promise<void> {
  if (definition.schema === undefined) return;
  try {
    await validatePayload(definition, json === undefined ? undefined : JSON.parse(json), 'json');
  } catch (error) {
    if (!(error instanceof SchemaViolationError)) throw error;
    await validatePayload(definition, data, 'add');
    throw error;
  }
}

function valueOf<Output>(
  { queue, name }: JobDefinition<any, Output, any, any>,
  result: StandardSchemaV1.Result<Output>,
  side: SchemaSide,
): Output {
  if (typeof result !== 'object' || result === null)
    throw new InvalidOptionError(schemaPath(queue, name), 'one that answers { value } or { issues }', result);
  // Array.from: lists of arktype are of classes of their own.
  if (result.issues) throw new SchemaViolationError(queue, name, Array.from(result.issues, readIssue), side);
  return result.value;
}

function readIssue({ message, path }: StandardSchemaV1.Issue): PayloadIssue {
  const steps = Array.from(path ?? [], (step) => String(typeof step === 'object' ? step.key : step));
  return { message, path: steps.join('.') };
}
