import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { InvalidOptionError, type PayloadIssue, type SchemaSide, SchemaViolationError } from '../errors.js';
import { checkJobName, checkQueueName } from './job-id.js';
import type { Job } from './job.js';
import { isThenable } from './thenable.js';

declare const RESULT: unique symbol;

/**
 * A kind of job: its queue, its name, its data and what its handler returns. `Input` is what the producer passes, `Output` what
 * the handler receives; they differ if the schema has defaults or coercions. Created by `defineJob`.
 */
export interface JobDefinition<
  Input = unknown,
  Output = Input,
  Result = unknown,
  Name extends string = string,
> {
  /** Name of the queue. */
  readonly queue: string;
  /** Name of the job. */
  readonly name: Name;
  /** The schema; absent if the definition has only a type. */
  readonly schema?: StandardSchemaV1<Input, Output> | undefined;
  /** Only for the compiler. @internal */
  readonly [RESULT]?: Result;

  /**
   * The same definition with the type of the result: `addAndWait` resolves to it, and a handler that returns something else does not
   * compile. The result is JSON, so a `Date` that the handler returns is a string for the caller.
   *
   * @example
   * export const render = defineJob('media', 'render', z.object({ url: z.url() })).returns<{ pdf: string }>();
   */
  returns<Returned>(): JobDefinition<Input, Output, Returned, Name>;
}

/** A definition of any kind, for functions that take all of them. */
export type AnyDefinition = JobDefinition<any, any, any, any>;

/** The argument of the handler of a definition: `JobOf<typeof welcome>`. */
export type JobOf<Definition extends AnyDefinition> = Job<OutputOf<Definition>, InputOf<Definition>>;

/** The data that a producer passes for a definition. */
export type InputOf<Definition extends AnyDefinition> =
  Definition extends JobDefinition<infer Input, any, any, any> ? Input : never;

/** The data a handler of a definition receives. */
export type OutputOf<Definition extends AnyDefinition> =
  Definition extends JobDefinition<any, infer Output, any, any> ? Output : never;

/** The return type of the handler of a definition; `unknown` without `returns`. */
export type ResultOf<Definition extends AnyDefinition> =
  Definition extends JobDefinition<any, any, infer Result, any> ? Result : never;

/**
 * Defines a kind of job once, for producers and handlers. The data is described by any Standard Schema (zod, valibot,
 * arktype and others), which is checked on both sides, or by a type alone.
 *
 * `add()` validates the data after a JSON round trip, because that is what the handler will get. The data is stored unchanged;
 * defaults and coercions of the schema are applied once, just before the handler runs. Use `z.coerce.date()` for dates: `z.date()`
 * throws, because JSON has no dates.
 *
 * @example
 * export const welcome = defineJob('email', 'welcome', z.object({ to: z.email(), copies: z.int().default(1) }));
 * export const purge = defineJob<{ olderThan: string }>('email', 'purge');
 *
 * @typeParam Name inferred, unless the data is given as a type; then repeat it for `Queue<typeof jobs>`:
 *   `defineJob<{ olderThan: string }, 'purge'>('email', 'purge')`.
 * @throws {InvalidQueueNameError}
 * @throws {InvalidJobNameError}
 * @throws {InvalidOptionError} if the third argument is not a Standard Schema.
 */
export function defineJob<Schema extends StandardSchemaV1, const Name extends string>(
  queue: string,
  name: Name,
  schema: Schema,
): JobDefinition<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>, unknown, Name>;
export function defineJob<Data = unknown, const Name extends string = string>(
  queue: string,
  name: Name,
): JobDefinition<Data, Data, unknown, Name>;
export function defineJob(queue: string, name: string, ...rest: [schema?: unknown]): AnyDefinition {
  // An explicit undefined is refused too: a schema that is not there yet (a circular import) must not be lost silently.
  return rest.length === 0
    ? new DefinedJob(checkQueueName(queue), checkJobName(name))
    : new DefinedJob(checkQueueName(queue), checkJobName(name), checkSchema(queue, name, rest[0]));
}

/** A checked definition. It is frozen and recognised by its private field, so it is not checked again. */
class DefinedJob {
  #checked = true;
  declare readonly schema?: StandardSchemaV1;

  constructor(
    readonly queue: string,
    readonly name: string,
    schema?: StandardSchemaV1,
  ) {
    if (schema !== undefined) this.schema = schema;
    Object.freeze(this);
  }

  returns(): this {
    return this;
  }

  static made(value: object): boolean {
    return #checked in value && value.#checked;
  }
}

function checkSchema(queue: string, name: string, schema: unknown): StandardSchemaV1 {
  if (isStandardSchema(schema)) return schema;
  throw new InvalidOptionError(
    schemaPath(queue, name),
    'a Standard Schema (zod 3.24+, valibot 1+, arktype 2+ and others) or left out',
    schema,
  );
}

/** How messages call the schema of a definition. */
function schemaPath(queue: string, name: string): string {
  return `the schema of defineJob('${queue}', ${JSON.stringify(name)})`;
}

function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  // ArkType schemas are functions.
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  try {
    const standard = (value as Partial<StandardSchemaV1>)['~standard'];
    return standard?.version === 1 && typeof standard.validate === 'function';
  } catch {
    // A revoked proxy throws on every access.
    return false;
  }
}

/** Whether the value looks like a result of `defineJob`: an object with the names of a queue and a job. */
export function isDefinition(value: unknown): value is AnyDefinition {
  try {
    return typeof value === 'object' && value !== null && 'queue' in value && 'name' in value;
  } catch {
    return false;
  }
}

/**
 * Returns a checked definition. A result of `defineJob` is returned as it is. An object written by hand, or created by another
 * copy of this package, is checked like the arguments of `defineJob`.
 *
 * @throws {InvalidQueueNameError | InvalidJobNameError | InvalidOptionError}
 */
export function checkDefinition(given: AnyDefinition, path: string): AnyDefinition {
  if (DefinedJob.made(given)) return given;
  let read: { queue: unknown; name: unknown; schema: unknown };
  try {
    read = { queue: given.queue, name: given.name, schema: given.schema };
  } catch {
    throw new InvalidOptionError(path, 'a definition that can be read', given);
  }
  const queue = checkQueueName(read.queue);
  const name = checkJobName(read.name);
  const schema = read.schema === undefined ? undefined : checkSchema(queue, name, read.schema);
  return new DefinedJob(queue, name, schema);
}

/**
 * Whether the schema describes its data as JSON Schema, and this field is not in it. False if the schema cannot tell: it has no
 * JSON Schema, or accepts fields that it does not name.
 */
export function lacksField({ schema }: AnyDefinition, path: readonly string[]): boolean {
  try {
    let node = jsonSchemaOf(schema);
    for (const name of path) {
      const { type, properties, additionalProperties } = node as Record<string, unknown>;
      if (type !== 'object' || !isObject(properties) || additionalProperties) return false;
      if (!Object.hasOwn(properties, name)) return true;
      node = properties[name];
    }
  } catch {
    // Such a schema has no JSON Schema, for example because it transforms its data.
  }
  return false;
}

/** The fields of the data with their defaults, or with empty values, as JSON. Null if the schema does not describe its data. */
export function exampleOf({ schema }: AnyDefinition): string | null {
  try {
    return JSON.stringify(exampleFrom(jsonSchemaOf(schema)), null, 2) ?? null;
  } catch {
    return null;
  }
}

function exampleFrom(node: unknown): unknown {
  if (!isObject(node)) return undefined;
  const { type, properties, default: given, const: only, enum: values } = node;
  const first = given ?? only ?? (values as readonly unknown[] | undefined)?.[0];
  if (first !== undefined) return first;
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(properties ?? {}).map(([name, one]) => [name, exampleFrom(one) ?? null]),
      );
    case 'array':
      return [];
    case 'string':
      return '';
    case 'number':
    case 'integer':
      return 0;
    case 'boolean':
      return false;
    default:
      return undefined;
  }
}

/** @throws if the schema cannot be described, for example because it transforms its data. */
function jsonSchemaOf(schema: AnyDefinition['schema']): unknown {
  const standard = schema?.['~standard'] as Partial<StandardJSONSchemaV1['~standard']> | undefined;
  return standard?.jsonSchema?.input({ target: 'draft-2020-12' });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/**
 * Returns the output of the schema, with defaults and coercions applied; without a schema, the data itself. It is a promise only
 * if the schema is asynchronous.
 *
 * @throws {SchemaViolationError} with every issue; the promise rejects with it if the schema is asynchronous.
 * @throws whatever code of the schema throws.
 */
export function validatePayload<Output>(
  definition: JobDefinition<any, Output, any, any>,
  data: unknown,
  side: SchemaSide,
  at = '',
): Output | Promise<Output> {
  if (definition.schema === undefined) return data as Output;
  const result = definition.schema['~standard'].validate(data);
  if (isThenable(result)) return result.then((settled) => valueOf(definition, settled, side, at));
  return valueOf(definition, result, side, at);
}

/**
 * The same of each item of a list.
 *
 * @throws as `validatePayload`; the paths of issues begin with the number of the item.
 */
export function validateItems<Output>(
  definition: JobDefinition<any, Output, any, any>,
  items: readonly unknown[],
  side: SchemaSide,
): readonly Output[] | Promise<readonly Output[]> {
  const checked = items.map((item, i) => validatePayload(definition, item, side, String(i)));
  return checked.some(isThenable) ? Promise.all(checked) : (checked as Output[]);
}

/**
 * Validates the data as the handler will get it, after a JSON round trip. The output of the schema must not be stored. The schema
 * is applied to the stored data just before the handler runs, and most transformations must not be applied twice.
 *
 * @param json the text of the data; undefined if there is none.
 * @returns the output of the schema; undefined without a schema.
 * @throws {SchemaViolationError} if the data does not match; it describes the original data if that does not match either
 */
export async function checkGiven(
  definition: JobDefinition<any, any, any, any>,
  data: unknown,
  json: string | undefined,
): Promise<unknown> {
  if (definition.schema === undefined) return undefined;
  try {
    return await validatePayload(definition, json === undefined ? undefined : JSON.parse(json), 'json');
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
  at: string,
): Output {
  if (typeof result !== 'object' || result === null)
    throw new InvalidOptionError(schemaPath(queue, name), 'one that returns { value } or { issues }', result);
  // Array.from, because the lists of ArkType are instances of its own classes.
  if (result.issues) {
    const issues = Array.from(result.issues, (issue) => readIssue(issue, at));
    throw new SchemaViolationError(queue, name, issues, side);
  }
  return result.value;
}

function readIssue({ message, path }: StandardSchemaV1.Issue, at: string): PayloadIssue {
  const steps = Array.from(path ?? [], (step) => String(typeof step === 'object' ? step.key : step));
  return { message, path: (at === '' ? steps : [at, ...steps]).join('.') };
}
