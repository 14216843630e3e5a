import { createHash } from 'node:crypto';
import type { EnqueueJob, KeyClaim } from '../contract/engine.js';
import { type AnyDefinition, checkGiven } from '../job/define-job.js';
import { checkJobName, generateId } from '../job/job-id.js';
import { headersOf } from '../job/headers.js';
import { encodeBody, NO_DATA, NO_OPTIONS, type RecordOptions } from '../job/job-record.js';
import { dataPath, pathText, type Path, quoted } from '../job/text.js';
import { encodePayload, readData } from '../job/payload.js';
import {
  checkJobOptions,
  placementOf,
  type CheckedJobOptions,
  type JobOptions,
  type Replication,
} from '../options/job-options.js';
import { withLimits } from '../options/limit-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { InvalidOptionError } from '../errors.js';
import { AGGREGATE_BYTES, type CheckedKey } from '../options/unique-options.js';

/** The arguments of an add, unchecked. */
export interface JobRequest {
  readonly name: string;
  readonly data: unknown;
  readonly options?: JobOptions | undefined;
  /** Whether the caller waits for its end. @default false */
  readonly awaited?: boolean;
}

/** A job as it is stored, and what else `add` needs. */
export interface MadeJob extends EnqueueJob {
  /** Whether the id is the caller's. Generated ids never collide. */
  readonly hasOwnId: boolean;
  /** Whether `add` rejects if another job holds the unique key. */
  readonly isExclusive?: boolean;
  /** Ends the wait for room in a full queue. */
  readonly signal?: AbortSignal;
  /** When the wait for room ends at the latest, by `performance.now()`. */
  readonly roomUntil?: number;
  /** The replication that `add` waits for; null if the confirmation of the primary is enough. */
  readonly replication: Replication | null;
  /** The options as the caller passed them, for observers. */
  readonly given?: object | undefined;
}

/**
 * A job without options. A class, because V8 allocates literals that survive a few collections in the old generation. Jobs in flight
 * survive some, and adds with 100 calls in flight were then half as fast.
 */
class PlainJob implements MadeJob {
  readonly hasOwnId = false;

  constructor(
    readonly id: string,
    readonly name: string,
    readonly body: string,
    readonly replication: Replication | null,
    readonly given: object | undefined,
  ) {}
}

/**
 * Checks a request and encodes the job for the store. A wrong request throws a typed error that names the place.
 *
 * @param json the data, if it is encoded already.
 */
export function makeJob(
  queue: ResolvedQueueOptions,
  request: JobRequest,
  now: number,
  path: Path,
  json?: string,
): MadeJob {
  const name = checkJobName(request.name);
  const { options } = request;
  let checked: CheckedJobOptions =
    options === undefined
      ? NO_OPTIONS
      : checkJobOptions(options, `${pathText(path)}.options`, queue.backoffs);
  if (queue.headers) {
    const headers = headersOf(checked.headers, queue.headers, { queue: queue.name, name });
    if (headers !== undefined) checked = { ...checked, headers };
  }
  const data = json ?? encodePayload(request.data, dataPath(path), queue);
  const createdAt = Math.floor(now);
  if (queue.limits) checked = withLimits(queue.limits, checked, request, path);
  const asked = checked.unique ?? checked.debounce ?? checked.throttle ?? checked.aggregate;
  const unique =
    asked &&
    claimOf(
      asked,
      { name, group: checked.group, maxBytes: queue.maxPayloadBytes },
      data,
      `${pathText(path)}.options`,
    );
  const isItem = unique?.on === 'aggregate';
  if (isItem && data === NO_DATA)
    throw new InvalidOptionError(
      `${pathText(path)}.options.aggregate`,
      'left out of a job without data',
      options?.aggregate,
    );
  const text = isItem ? `[${data}]` : data;
  const stored =
    unique || request.awaited
      ? { ...checked, ...implied(unique, request, checked.unique !== undefined) }
      : checked;
  const body = encodeBody(name, createdAt, stored, text);
  const { durability: replication } = queue;
  if (checked === NO_OPTIONS) return new PlainJob(generateId(createdAt), name, body, replication, options);
  const { id, durability, signal } = checked;
  const { idHeldBy = queue.policy.idHeldBy } = checked;
  return {
    id: id ?? generateId(createdAt),
    name,
    body,
    hasOwnId: id !== undefined,
    replication: durability === undefined ? replication : durability,
    given: options,
    ...placementOf(checked),
    ...delayOf(unique),
    ...(unique && { unique }),
    ...(asked?.on === 'error' && { isExclusive: true }),
    ...(signal && { signal }),
    ...(id !== undefined && idHeldBy.length > 0 && { idHeldBy }),
  };
}

/** The stored options that follow from a key, and from a caller that waits. */
function implied(unique: KeyClaim | undefined, { awaited }: JobRequest, isUnique: boolean): RecordOptions {
  return {
    ...delayOf(unique),
    // Later adds delay the job further.
    ...(unique?.on === 'aggregate' && { items: 1, delayMs: unique.longestMs }),
    ...(unique && { digest: unique.digest }),
    ...(isUnique && { isUnique }),
    ...(awaited && { awaited: true }),
  };
}

function delayOf(unique: KeyClaim | undefined): { delayMs?: number } {
  return unique && unique.delayMs > 0 ? { delayMs: unique.delayMs } : {};
}

/**
 * Like `makeJob`, but for a definition: its schema validates the data first. The data may be absent if the schema accepts
 * undefined (for example because it has a default).
 *
 * @throws {SchemaViolationError}
 */
export async function makeDefinedJob(
  queue: ResolvedQueueOptions,
  definition: AnyDefinition,
  { data, options, awaited = false }: Omit<JobRequest, 'name'>,
  now: number,
  path: Path,
): Promise<MadeJob> {
  const isNone = data === undefined && definition.schema !== undefined;
  const json = isNone ? NO_DATA : encodePayload(data, dataPath(path), queue);
  await checkGiven(definition, readData(data), isNone ? undefined : json);
  return makeJob(queue, { name: definition.name, data, options, awaited }, now, path, json);
}

/** Characters of a digest: 128 bits. */
const DIGEST_CHARS = 22;

/** The values besides the key on which its digest depends. */
interface Asking {
  readonly name: string;
  readonly group: string | undefined;
  /** The most that the data of a job may take. */
  readonly maxBytes: number;
}

/**
 * The unique key of a job, as a digest: keys of any length take the same space, and their values are not readable in Redis.
 *
 * @param json the data of the job.
 * @throws {InvalidOptionError} if a field of `by` is not in the data, or `maxBytes` of `aggregate` is too large for the queue.
 */
function claimOf(checked: CheckedKey, asking: Asking, json: string, path: string): KeyClaim {
  const { kind, by, scope, forMs, states, on, delayMs, longestMs, most, mostBytes } = checked;
  const { name, group = 0, maxBytes } = asking;
  const key = by ? valuesAt(by, json, `${path}.unique.by`) : checked.key;
  const parts = [kind, scope === 'queue' ? 0 : name, by ?? 0, key];
  const text = JSON.stringify(kind === 'aggregate' ? [...parts, group] : parts);
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, DIGEST_CHARS);
  const claim = { digest, forMs, states, on: on === 'error' ? ('skip' as const) : on, delayMs, longestMs };
  if (kind !== 'aggregate') return claim;
  if (mostBytes !== undefined && mostBytes > maxBytes)
    throw new InvalidOptionError(
      `${path}.aggregate.maxBytes`,
      `at most ${maxBytes}, the maxPayloadBytes of the queue`,
      mostBytes,
    );
  return { ...claim, most: most!, mostBytes: mostBytes ?? Math.min(AGGREGATE_BYTES, maxBytes) };
}

function valuesAt(paths: readonly string[], json: string, path: string): unknown[] {
  const data: unknown = json === '' ? undefined : JSON.parse(json);
  return paths.map((one, i) => {
    let value = data;
    for (const step of one.split('.')) {
      const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, step);
      if (!isThere)
        throw new InvalidOptionError(
          `${path}[${i}]`,
          `a field of the data of the job`,
          one,
          `${path}[${i}] must be a field of the data, but the data has no ${quoted(one)}`,
        );
      value = (value as Record<string, unknown>)[step];
    }
    return sorted(value);
  });
}

/** Sorts the fields of objects, so that their order does not change the key. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([name, one]) => [name, sorted(one)]);
}
