import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../errors.js';

/** How to reach Redis: a URL, ioredis options (also with `url`), or a factory that makes a client. */
export type ConnectionOption =
  | string
  | (RedisOptions & { readonly url?: string })
  | ((role: 'command' | 'blocking' | 'events' | 'replicated') => Redis | Cluster);

export const DEFAULT_CONNECTION = 'redis://localhost:6379';

/**
 * Checks what can be checked without connecting. Errors never show a password: of a URL its user part is cut out, of
 * an object only the field at fault is shown.
 *
 * @throws {InvalidOptionError}
 */
export function checkConnection(value: unknown, path: string): ConnectionOption {
  if (typeof value === 'string') return checkUrl(value, path);
  if (typeof value === 'function') return value;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidOptionError(
      path,
      'a redis:// or rediss:// URL, ioredis options, or a function that makes a client',
      // What a list holds may be options with a password.
      Array.isArray(value) ? 'a list' : value,
    );
  }
  if (typeof (value as Partial<Redis>).duplicate === 'function') {
    throw new InvalidOptionError(
      path,
      'left out',
      undefined,
      `${path} is an ioredis client; give a function that makes one, since several are needed and are closed at the end`,
    );
  }
  return checkOptions(value as Record<string, unknown>, path);
}

/** ioredis puts its prefix before the keys of commands only: scripts would miss it on every key they are told in words. */
export function refuseKeyPrefix(options: { readonly keyPrefix?: unknown }, path: string): void {
  if (options.keyPrefix === undefined || options.keyPrefix === '') return;
  throw new InvalidOptionError(
    `${path}.keyPrefix`,
    'left out',
    options.keyPrefix,
    `${path}.keyPrefix: use \`prefix\` of forRoot instead: ioredis' keyPrefix is not applied to keys inside scripts`,
  );
}

function checkOptions(options: Record<string, unknown>, path: string): ConnectionOption {
  refuseKeyPrefix(options, path);
  if (options['url'] !== undefined) checkUrl(options['url'], `${path}.url`);
  // The two that come as NaN from a missing environment variable, which ioredis would only stumble over later.
  checkNumber(options['port'], 65_535, `${path}.port`);
  checkNumber(options['db'], 1_000_000, `${path}.db`);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(options)) if (key !== '__proto__') copy[key] = options[key];
  return copy;
}

/** ioredis takes digits in a string too. */
function checkNumber(value: unknown, max: number, path: string): void {
  if (value === undefined) return;
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (Number.isInteger(number) && (number as number) >= 0 && (number as number) <= max) return;
  throw new InvalidOptionError(path, `an integer from 0 to ${max}`, value);
}

function checkUrl(value: unknown, path: string): string {
  if (typeof value !== 'string' || !isRedisUrl(value)) {
    throw new InvalidOptionError(path, 'a redis:// or rediss:// URL', withoutSecrets(value));
  }
  // ioredis reads options from the query as well.
  refuseKeyPrefix({ keyPrefix: new URL(value).searchParams.get('keyPrefix') ?? undefined }, path);
  return value;
}

/** The path is the number of the database; anything else there comes from a password that was not percent-encoded. */
function isRedisUrl(text: string): boolean {
  return /^rediss?:\/\//i.test(text) && URL.canParse(text) && /^(\/\d*)?$/.test(new URL(text).pathname);
}

/** Everything up to the last @ may be a user and password, also where the rest is no URL. */
function withoutSecrets(value: unknown): unknown {
  return typeof value === 'string'
    ? value.replace(/^(\w+:\/\/)?.*@/s, '$1***@').replace(/\?.*/s, '?***')
    : value;
}
