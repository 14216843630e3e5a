import { createHash } from 'node:crypto';
import type { KeyClaim } from '../contract/engine.js';
import { InvalidOptionError } from '../errors.js';
import { quoted } from '../job/text.js';
import type { CheckedKey } from '../options/unique-options.js';

/** Characters of a digest: 128 bits. */
const DIGEST_CHARS = 22;

/** What a key depends on besides itself. */
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
 * @throws {InvalidOptionError} if a field of `by` is not in the data.
 */
export function claimOf(checked: CheckedKey, asking: Asking, json: string, path: string): KeyClaim {
  const { kind, by, scope, forMs, states, on, delayMs, longestMs, most, mostBytes } = checked;
  const { name, group = 0, maxBytes } = asking;
  const key = by ? valuesAt(by, json, `${path}.unique.by`) : checked.key;
  const parts = [kind, scope === 'queue' ? 0 : name, by ?? 0, key];
  const text = JSON.stringify(kind === 'aggregate' ? [...parts, group] : parts);
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, DIGEST_CHARS);
  const claim = { digest, forMs, states, on: on === 'error' ? ('skip' as const) : on, delayMs, longestMs };
  return mostBytes === undefined
    ? claim
    : { ...claim, most: most!, mostBytes: Math.min(mostBytes, maxBytes) };
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
