import { UnsupportedRedisError } from '../errors.js';

/**
 * What the reply of `INFO` must say before a job is trusted to the server: a version that runs scripts at maxmemory, or it
 * is refused; and a sentence for every setting under which jobs may be lost.
 */
export function checkServer(info: string): string[] {
  const field = (name: string): string => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';
  const isValkey = field('server_name') === 'valkey' || field('valkey_version') !== '';
  const version = isValkey ? field('valkey_version') : field('redis_version');
  if (version !== '' && !atLeast(version, isValkey ? [7, 2] : [7, 0])) {
    throw new UnsupportedRedisError(isValkey ? 'Valkey' : 'Redis', version);
  }

  const warnings: string[] = [];
  const policy = field('maxmemory_policy');
  if (policy !== '' && policy !== 'noeviction') {
    warnings.push(
      `Redis may evict keys (maxmemory-policy ${policy}): under memory pressure jobs can be lost; set it to noeviction`,
    );
  }
  const appendOnly = field('aof_enabled') === '1';
  if (field('aof_enabled') !== '' && !appendOnly) {
    warnings.push(
      'Redis keeps no append-only file (appendonly no): jobs added since the last snapshot, or all of them where there is ' +
        'none, are lost when it restarts; set appendonly to yes',
    );
  }
  return warnings;
}

function atLeast(version: string, [major, minor]: [number, number]): boolean {
  const [a = 0, b = 0] = version.split('.').map(Number);
  return a > major || (a === major && b >= minor);
}
