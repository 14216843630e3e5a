import { GodwitError, InvalidPayloadError, PayloadTooLargeError } from '../errors.js';
import { show } from '../errors/show.js';
import { pathText, type Path, pathStep } from './text.js';
import { types } from 'node:util';

/** How to treat values that JSON would drop or change. */
export type PayloadMode = 'strict' | 'json';

/** The options of a queue for data, results and progress. */
export interface PayloadRules {
  readonly maxPayloadBytes: number;
  readonly payloads: PayloadMode;
}

/** Default limit of data and results, in bytes. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 1_048_576;

/** Data that a person wrote as JSON. Its text is stored as it is, because `JSON.parse` rounds long numbers. */
export class JsonText {
  private readonly value: unknown;

  /** @param text valid JSON without spaces between its parts. */
  constructor(readonly text: string) {
    this.value = JSON.parse(text);
  }

  /** As JavaScript reads it. */
  toJSON(): unknown {
    return this.value;
  }
}

/** The data as JavaScript reads it. */
export function readData(data: unknown): unknown {
  return data instanceof JsonText ? data.toJSON() : data;
}

/**
 * The JSON text of a job's data. Values that JSON would silently drop or change are refused with their path, unless `payloads` is
 * `'json'`; `undefined` properties are left out, and values with a `toJSON` (Date, Buffer, classes) are replaced by what it returns.
 *
 * @param path how errors call the data: `data`, `add().data`.
 * @param what how a size error calls the value.
 * @throws {InvalidPayloadError} naming the place, such as `data.items[3].at`.
 * @throws {PayloadTooLargeError} above `maxPayloadBytes` of UTF-8.
 */
export function encodePayload(data: unknown, path: Path, rules: PayloadRules, what?: string): string {
  const { maxPayloadBytes: maxBytes } = rules;
  const checked = toJson(data, path, rules, what);
  const json = data instanceof JsonText ? data.text : checked;
  // No UTF-16 unit takes more than three bytes of UTF-8, so most texts need no counting.
  if (json.length * 3 > maxBytes) {
    const bytes = Buffer.byteLength(json);
    if (bytes > maxBytes) throw new PayloadTooLargeError(bytes, maxBytes, what);
  }
  return json;
}

/** Getters and `toJSON` are user code: they may throw, or return something else when JSON calls them again. */
function toJson(data: unknown, path: Path, rules: PayloadRules, what: string | undefined): string {
  const { maxPayloadBytes: maxBytes, payloads } = rules;
  let json: string | undefined;
  try {
    const fault = findPayloadFault(data, rules);
    if (fault?.minBytes !== undefined) throw new PayloadTooLargeError(fault.minBytes, maxBytes, what, true);
    if (fault !== undefined) throw new InvalidPayloadError(fault.pathFrom(pathText(path)), fault.found);
    json = JSON.stringify(data);
    if (payloads === 'json') json ??= 'null';
  } catch (error) {
    if (error instanceof GodwitError) throw error;
    throw new InvalidPayloadError(
      pathText(path),
      `something that throws ${thrownText(error)} when it is read`,
    );
  }
  if (json === undefined) throw new InvalidPayloadError(pathText(path), 'undefined when it is read again');
  return json;
}

function thrownText(error: unknown): string {
  try {
    return show((error as Error).message);
  } catch {
    return 'something';
  }
}

/**
 * The JSON text of the result of a handler; `undefined` if there is none.
 *
 * @throws as `encodePayload`, with paths that start with `result`.
 */
export function encodeResult(value: unknown, rules: PayloadRules): string | undefined {
  return value === undefined ? undefined : encodePayload(value, 'result', rules, 'the result of the job');
}

/** Maximum depth. Deeper data is a mistake, and some readers would exceed their stack. */
const MAX_DEPTH = 1_000;

const TOO_DEEP = 'nested deeper than 1,000 levels';

/**
 * The walk stops at this multiple of the limit. Below it, encoding the data to get its exact size is cheap; above it (a file in memory,
 * shared parts that multiply) encoding could take seconds or all the memory.
 */
const GIVE_UP_AT = 8;

/** Computes a lower bound for the size of the encoded text. */
interface Budget {
  bytes: number;
  readonly max: number;
  /** Whether the caller accepts that JSON drops or changes values. */
  readonly isLax: boolean;
}

/** A value that JSON cannot represent. Its path is collected while the recursion returns. */
class PayloadFault {
  /** The containers of the value, innermost first, each with the key that leads inwards. */
  private readonly containers: object[] = [];
  private readonly keys: (string | number)[] = [];

  constructor(
    public found: string,
    /** Set if only the size is wrong: a lower bound for the size of the text. */
    readonly minBytes?: number,
  ) {}

  inside(container: object, key: string | number): this {
    this.containers.push(container);
    this.keys.push(key);
    return this;
  }

  /** The path, at most ten steps of it. */
  pathFrom(root: string): string {
    const steps = this.keys.toReversed().map(pathStep);
    return root + (steps.length > 10 ? `${steps.slice(0, 10).join('')}...` : steps.join(''));
  }

  /** Data that is too deep is circular if a container contains itself; the path then ends at the second occurrence. */
  orCircular(): this {
    if (this.found !== TOO_DEEP) return this;
    const seen = new Set<object>();
    for (let at = this.containers.length - 1; at >= 0; at--) {
      if (seen.has(this.containers[at]!)) {
        this.found = 'a circular reference';
        this.keys.splice(0, at + 1);
        return this;
      }
      seen.add(this.containers[at]!);
    }
    return this;
  }
}

/** The first value in the data that JSON would drop, change or fail on; `undefined` if there is none. */
function findPayloadFault(
  data: unknown,
  { maxPayloadBytes, payloads }: PayloadRules,
): PayloadFault | undefined {
  const budget = { bytes: 0, max: maxPayloadBytes * GIVE_UP_AT, isLax: payloads === 'json' };
  const fault = walk(data, '', 1, budget);
  if (fault !== undefined) return fault.orCircular();
  return budget.bytes > budget.max ? tooLarge(budget) : undefined;
}

/** A value that JSON drops or changes. */
function changed(budget: Budget, found: string): PayloadFault | undefined {
  return budget.isLax ? undefined : new PayloadFault(found);
}

function tooLarge(budget: Budget): PayloadFault {
  return new PayloadFault('too large', budget.bytes);
}

function walk(value: unknown, key: string | number, depth: number, budget: Budget): PayloadFault | undefined {
  switch (typeof value) {
    case 'string':
      budget.bytes += value.length;
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : changed(budget, `${value}`);
    case 'boolean':
      return undefined;
    case 'object':
      return value === null ? undefined : walkObject(value, key, depth, budget);
    case 'undefined':
      return changed(budget, 'undefined');
    case 'bigint':
      return new PayloadFault('a BigInt');
    default:
      return changed(budget, `a ${typeof value}`);
  }
}

function walkObject(
  value: object,
  key: string | number,
  depth: number,
  budget: Budget,
): PayloadFault | undefined {
  if (depth > MAX_DEPTH) return new PayloadFault(TOO_DEEP);
  if (budget.bytes > budget.max) return tooLarge(budget);
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function')
    return walkReplaced(value, key, depth, budget);
  if (Array.isArray(value)) return walkArray(value, depth, budget);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const found = faultOfInstance(value);
    if (found !== undefined && !budget.isLax) return new PayloadFault(found);
  }
  return walkFields(value as Record<string, unknown>, depth, budget);
}

function walkFields(value: Record<string, unknown>, depth: number, budget: Budget): PayloadFault | undefined {
  budget.bytes += 2;
  for (const key of Object.keys(value)) {
    const inner = value[key];
    if (inner === undefined) continue;
    budget.bytes += key.length + 3;
    const fault = walk(inner, key, depth + 1, budget);
    if (fault !== undefined) return fault.inside(value, key);
  }
  return undefined;
}

function walkArray(value: readonly unknown[], depth: number, budget: Budget): PayloadFault | undefined {
  budget.bytes += 2 * value.length;
  if (budget.bytes > budget.max) return tooLarge(budget);
  for (let at = 0; at < value.length; at++) {
    const inner = value[at];
    if (inner === undefined && !(at in value) && !budget.isLax)
      return new PayloadFault('a hole in an array').inside(value, at);
    const fault = walk(inner, at, depth + 1, budget);
    if (fault !== undefined) return fault.inside(value, at);
  }
  return undefined;
}

/** A value with a `toJSON` method. */
function walkReplaced(
  value: object,
  key: string | number,
  depth: number,
  budget: Budget,
): PayloadFault | undefined {
  if (types.isDate(value)) {
    // JSON would turn it into null.
    return Number.isNaN(value.getTime()) ? changed(budget, 'an invalid Date') : undefined;
  }
  if (Buffer.isBuffer(value)) {
    budget.bytes += 2 * value.length;
    return budget.bytes > budget.max ? tooLarge(budget) : undefined;
  }
  const replaced = (value as { toJSON(key: string): unknown }).toJSON(String(key));
  if (replaced === value) return walkFields(replaced as Record<string, unknown>, depth, budget);
  return walkOnce(replaced, depth, budget);
}

/** As in `JSON.stringify`, `toJSON` is not called again on the value that `toJSON` returned. */
function walkOnce(value: unknown, depth: number, budget: Budget): PayloadFault | undefined {
  if (typeof value !== 'object' || value === null) return walk(value, '', depth, budget);
  if (Array.isArray(value)) return walkArray(value, depth, budget);
  const found = faultOfInstance(value);
  return found === undefined || budget.isLax
    ? walkFields(value as Record<string, unknown>, depth, budget)
    : new PayloadFault(found);
}

/**
 * JSON would write `{}` for built-in objects, because their content is not in fields. They are recognised by their tag, which also works
 * for objects of another realm (of a test runner or a vm).
 */
function faultOfInstance(value: object): string | undefined {
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  switch (tag) {
    case 'Object':
    case 'String':
    case 'Boolean':
      return undefined;
    case 'Number':
      return Number.isFinite(Number(value)) ? undefined : `${Number(value)}`;
  }
  // A class of the user may set Symbol.toStringTag; its fields are data nevertheless.
  const isOwnClass = !HIDING.has(tag) && !ArrayBuffer.isView(value) && Object.keys(value).length > 0;
  return isOwnClass ? undefined : `${/^[AEIO]/.test(tag) ? 'an' : 'a'} ${tag}`;
}

/** Built-in objects whose content JSON would lose, although they may have fields. */
const HIDING = new Set([
  'ArrayBuffer',
  'Error',
  'Map',
  'Promise',
  'RegExp',
  'Set',
  'SharedArrayBuffer',
  'WeakMap',
  'WeakRef',
  'WeakSet',
]);
