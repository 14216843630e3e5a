import { InvalidOptionError } from '../errors.js';
import { hasFields } from './fields.js';

/**
 * Small strings that are stored with a job in addition to its data: the context of a trace, the tenant, the user. At most 64,
 * with names as in HTTP (but case-sensitive), 8,192 bytes in all.
 *
 * @example
 * await emails.add('welcome', { to }, { headers: { 'x-tenant': 'acme' } });
 */
export type JobHeaders = Readonly<Record<string, string>>;

/** The argument of the option `headers` of `forRoot`. */
export interface HeadersContext {
  /** Name of the queue. */
  readonly queue: string;
  /** Name of the job that is added. */
  readonly name: string;
}

/**
 * Called for each job that this process adds, in the async context of the caller. The returned headers are stored with the job.
 */
export type HeadersHook = (job: HeadersContext) => JobHeaders | undefined;

/** The headers of a job without headers. */
export const NO_HEADERS: JobHeaders = Object.freeze({});

const MAX_HEADERS = 64;
const MAX_HEADER_BYTES = 8_192;
/** A token as HTTP defines it, so that headers can be copied from and to a request. */
const NAME = /^[\w!#$%&'*+.^`|~-]{1,128}$/;

/** @throws {InvalidOptionError} */
export function checkHeaders(value: unknown, path: string): JobHeaders {
  const fault = (phrase: string, given: unknown, place = path) =>
    new InvalidOptionError(place, phrase, given);
  let entries: [string, unknown][];
  try {
    if (!isPlain(value)) throw fault('a plain object with strings', value);
    entries = Object.entries(value);
  } catch (error) {
    throw error instanceof InvalidOptionError ? error : fault('something that can be read', value);
  }
  let bytes = 0;
  for (const [name, text] of entries) {
    if (!NAME.test(name)) throw fault('an object with names as in HTTP, of 1 to 128 characters', name);
    if (typeof text !== 'string') throw fault('a string', text, `${path}[${JSON.stringify(name)}]`);
    bytes += name.length + Buffer.byteLength(text);
  }
  if (entries.length > MAX_HEADERS)
    throw fault(`an object with at most ${MAX_HEADERS} headers`, entries.length);
  if (bytes > MAX_HEADER_BYTES)
    throw fault(`an object with at most ${MAX_HEADER_BYTES} bytes of names and values`, bytes);
  // Each getter has been read once.
  return Object.fromEntries(entries) as JobHeaders;
}

/** Reads stored headers. Values that are not strings are dropped: they were written by hand or by a newer version. */
export function storedHeaders(value: unknown): JobHeaders | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value).filter(([, text]) => typeof text === 'string');
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** The headers of an add; those of the caller override those of the hook. Undefined if there are none. */
export function headersOf(
  given: JobHeaders | undefined,
  hook: HeadersHook | undefined,
  job: HeadersContext,
): JobHeaders | undefined {
  const more = hook?.(job);
  if (more === undefined || more === null) return given;
  const checked = checkHeaders(more, 'forRoot().headers()');
  return given === undefined ? checked : checkHeaders({ ...checked, ...given }, 'add().options.headers');
}

/** Whether the value is a plain object. Objects of a class, such as `Headers` or `Map`, do not have their entries as fields. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (!hasFields(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.hasOwn(prototype as object, 'isPrototypeOf');
}
