import { GodwitError, InvalidPayloadError, PayloadTooLargeError, show } from '../errors.js';
import { pathText, type Path } from './path.js';
import { findPayloadFault } from './payload-fault.js';

/** Default limit of data and results, in bytes. */
export const DEFAULT_MAX_PAYLOAD_BYTES = 1_048_576;

/**
 * The JSON text of a job's data. Values that JSON would silently drop or change are refused with their path; `undefined` properties are
 * left out, and values with a `toJSON` (Date, Buffer, classes) are replaced by what it returns.
 *
 * @param path how errors call the data: `data`, `add().data`.
 * @param what how a size error calls it.
 * @throws {InvalidPayloadError} naming the place, such as `data.items[3].at`.
 * @throws {PayloadTooLargeError} above `maxBytes` of UTF-8.
 */
export function encodePayload(data: unknown, path: Path, maxBytes: number, what?: string): string {
  const json = toJson(data, path, maxBytes, what);
  // No UTF-16 unit takes more than three bytes of UTF-8, so most texts need no counting.
  if (json.length * 3 > maxBytes) {
    const bytes = Buffer.byteLength(json);
    if (bytes > maxBytes) throw new PayloadTooLargeError(bytes, maxBytes, what);
  }
  return json;
}

/** Getters and `toJSON` are user code: they may throw, or return something else when JSON calls them again. */
function toJson(data: unknown, path: Path, maxBytes: number, what: string | undefined): string {
  let json: string | undefined;
  try {
    const fault = findPayloadFault(data, maxBytes);
    if (fault?.minBytes !== undefined) throw new PayloadTooLargeError(fault.minBytes, maxBytes, what, true);
    if (fault !== undefined) throw new InvalidPayloadError(fault.pathFrom(pathText(path)), fault.found);
    json = JSON.stringify(data);
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
 * The JSON text of what a handler returned; `undefined` for none.
 *
 * @throws as `encodePayload`, with paths that start with `result`.
 */
export function encodeResult(value: unknown, maxBytes = DEFAULT_MAX_PAYLOAD_BYTES): string | undefined {
  return value === undefined ? undefined : encodePayload(value, 'result', maxBytes, 'the result of the job');
}
