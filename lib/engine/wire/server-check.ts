import { UnsupportedRedisError } from '../../errors.js';
import type { LinkEvent, ServerWarning } from '../../contract/engine.js';
import type { Link } from './link.js';

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

/** A script that always fails: no entry of a stream has this id. It shows whether scripts may write events. */
const TRY_EVENT = "return redis.pcall('XADD', ARGV[1], '0-0', 'a', 'b').err";

/** The effect of a missing right, by connection. Only for calls whose refusal no caller sees. */
const PREVENTED: Partial<Record<LinkEvent['role'], string>> = {
  command: 'no events are written (XADD), so subscribers and addAndWait() wait in vain',
  blocking: 'workers cannot wait for jobs (BZPOPMIN), so they look for jobs only once a second',
  events: 'events cannot be read (XREAD), so subscribers and addAndWait() wait in vain',
};

/** Reports each warning once, even if several servers cause it. */
export class ServerWarnings {
  private readonly reported = new Set<string>();
  private readonly listeners = new Set<(warning: ServerWarning) => void>();

  constructor(private readonly replicasAsked: () => number = () => 0) {}

  /** @throws {UnsupportedRedisError} */
  check(info: string): void {
    for (const warning of checkServer(info, this.replicasAsked())) this.report(warning, warning.code);
  }

  /** Checks whether scripts may write events: they ignore it if they may not. Never rejects. */
  async tryEvent(link: Pick<Link, 'write'>, stream: string, silentMs: number): Promise<void> {
    const answer: unknown = await link
      .write('open', 'eval', [TRY_EVENT, 0, stream], silentMs)
      .catch(() => undefined);
    if (/can't run this command|run the 'xadd' command/.test(String(answer)))
      this.refused('command', 'NOPERM', String(answer));
  }

  /** Called with every refusal on a connection of this role. */
  readonly refused = (role: LinkEvent['role'], reply: string, message: string): void => {
    const prevented = PREVENTED[role];
    if (reply !== 'NOPERM' || !prevented) return;
    const text = `the ACL user of the connection lacks a right: ${prevented}; give it the rights that \`godwit acl\` lists (${message})`;
    this.report({ code: 'missing-right', message: text }, `missing-right ${role}`);
  };

  private report(warning: ServerWarning, once: string): void {
    if (this.reported.has(once)) return;
    this.reported.add(once);
    for (const listener of this.listeners) listener(warning);
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
