import { UnsupportedRedisError } from '../../errors.js';
import type { ServerWarning } from '../../contract/engine.js';

/**
 * Checks the reply of `INFO` before the server is used. Refuses a version that cannot run scripts at `maxmemory`. Returns warnings
 * for settings with which jobs can be lost or adds fail.
 *
 * @param asked the largest number of replicas that must confirm the adds of a queue.
 */
export function checkServer(info: string, asked: number): ServerWarning[] {
  const field = fieldsOf(info);
  const { isValkey, version } = versionOf(field);
  if (version !== '' && !atLeast(version, isValkey ? [7, 2] : [7, 0])) {
    throw new UnsupportedRedisError(isValkey ? 'Valkey' : 'Redis', version);
  }
  return [...memoryWarnings(field), ...diskWarnings(field), ...replicationWarnings(field, info, asked)];
}

/** The name of the server, as in `Redis 7.0.15`. Null if `INFO` does not say. */
export function nameOfServer(info: string): string | null {
  const { isValkey, version } = versionOf(fieldsOf(info));
  return version === '' ? null : `${isValkey ? 'Valkey' : 'Redis'} ${version}`;
}

/** Reports each warning once, even if several servers cause it. */
export class ServerWarnings {
  private readonly reportedCodes = new Set<ServerWarning['code']>();
  private readonly listeners = new Set<(warning: ServerWarning) => void>();

  constructor(private readonly replicasAsked: () => number = () => 0) {}

  /** @throws {UnsupportedRedisError} */
  check(info: string): void {
    for (const warning of checkServer(info, this.replicasAsked())) {
      if (this.reportedCodes.has(warning.code)) continue;
      this.reportedCodes.add(warning.code);
      for (const listener of this.listeners) listener(warning);
    }
  }

  listen(listener: (warning: ServerWarning) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

type Field = (name: string) => string;

/** Reads fields of `INFO`; empty if it has none of that name. */
export function fieldsOf(info: string): Field {
  return (name) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';
}

function versionOf(field: Field): { isValkey: boolean; version: string } {
  const isValkey = field('server_name') === 'valkey' || field('valkey_version') !== '';
  return { isValkey, version: isValkey ? field('valkey_version') : field('redis_version') };
}

function memoryWarnings(field: Field): ServerWarning[] {
  const policy = field('maxmemory_policy');
  if (policy === '' || policy === 'noeviction') return [];
  const message =
    `Redis may evict keys (maxmemory-policy ${policy}): under memory pressure jobs can be lost; ` +
    'set it to noeviction';
  return [{ code: 'evicts-keys', message }];
}

function diskWarnings(field: Field): ServerWarning[] {
  if (field('aof_enabled') !== '0') return [];
  const message =
    'Redis keeps no append-only file (appendonly no): jobs added since the last snapshot, or all jobs if there is none, are ' +
    'lost when it restarts; set appendonly to yes';
  return [{ code: 'no-append-only-file', message }];
}

function replicationWarnings(field: Field, info: string, asked: number): ServerWarning[] {
  if (field('role') === 'slave') {
    const message =
      'this Redis is a replica, which refuses every write; connect to its primary, or name the sentinels in the ' +
      'connection';
    return [{ code: 'read-only-replica', message }];
  }
  // A replica that still loads its first copy confirms nothing.
  const online = info.match(/^slave\d+:.*\bstate=online\b/gm)?.length ?? 0;
  if (online >= asked) return [];
  const message =
    `a queue wants each add confirmed by ${asked} ${asked === 1 ? 'replica' : 'replicas'} (durability), but Redis has ` +
    `${online}: such adds fail until there are more`;
  return [{ code: 'too-few-replicas', message }];
}

/** Whether a version such as `7.0.15` is this one or a later one. */
export function atLeast(version: string, [major, minor]: [number, number]): boolean {
  const [a = 0, b = 0] = version.split('.').map(Number);
  return a > major || (a === major && b >= minor);
}
