import type { Redis } from 'ioredis';
import { aclRules } from '../../tools/acl.mjs';

const PASSWORD = 'secret';
/** Stands for the prefix in rules that are kept. */
const PLACE = 'PREFIX';
/** The Redis user of a spec that has a server of its own. */
const OWNER = 'godwit-test';

interface TestUser {
  readonly url: string;
  readonly user: string;
}

/** `library`: only the rights that the documentation asks for. `all`: for tests of tools that run any command. */
export type Rights = 'library' | 'all';

/**
 * Each test has its own user. So its connections, also those of threads and child processes, are not mixed up with
 * those of other spec files.
 */
export async function addUser(admin: Redis, prefix: string, rights: Rights): Promise<TestUser> {
  const user = `test-${prefix}`;
  const few = async () => libraryRules(prefix, await versionOf(admin));
  const rules = rights === 'all' ? nearlyAll(prefix) : await few();
  await admin.call('ACL', 'SETUSER', user, 'reset', 'on', `>${PASSWORD}`, ...rules);
  return { url: urlOf(`redis://${admin.options.host}:${admin.options.port}`, user), user };
}

/** Options for starting a server, so that the user exists again after a restart. */
export function ownerArgs(cluster = false): string[] {
  const commands = aclRules({ prefix: '', cluster }).filter((rule) => rule.startsWith('+'));
  return ['--user', OWNER, 'on', `>${PASSWORD}`, '~{*', ...commands];
}

export function ownerOf(serverUrl: string): TestUser {
  return { url: urlOf(serverUrl, OWNER), user: OWNER };
}

/** The calls that the server refused to this user, as sentences. */
export async function refusals(admin: Redis, user: string): Promise<string[]> {
  const log = (await admin.call('ACL', 'LOG', 128)) as (string | number)[][];
  return (
    log
      .map((flat) => new Map(flat.map((value, i) => [value, flat[i + 1]])))
      .filter((entry) => entry.get('username') === user && entry.get('reason') !== 'auth')
      // ioredis sends its name to every server since Redis 7.2, with or without the right.
      .filter((entry) => entry.get('object') !== 'client|setinfo')
      .map((entry) => `${entry.get('reason')} ${entry.get('object')} (${entry.get('context')})`)
  );
}

function nearlyAll(prefix: string): string[] {
  const forbidden = 'flushall flushdb swapdb shutdown debug failover replicaof config|set'.split(' ');
  return [`~{${prefix}*`, '&*', '+@all', ...forbidden.map((command) => `-${command}`)];
}

function urlOf(serverUrl: string, user: string): string {
  const url = new URL(serverUrl);
  url.username = user;
  url.password = PASSWORD;
  return url.href;
}

const rulesOf = new Map<string, readonly string[]>();

/** The rules of a prefix. Finding the commands in all scripts takes longer than many a test, so it is done once for each version. */
function libraryRules(prefix: string, redis: string): string[] {
  const known = rulesOf.get(redis) ?? aclRules({ prefix: PLACE, redis });
  rulesOf.set(redis, known);
  return known.map((rule) => rule.replace(PLACE, prefix));
}

const versions = new WeakMap<Redis, string>();

async function versionOf(admin: Redis): Promise<string> {
  const known = versions.get(admin) ?? /^redis_version:(\S+)/m.exec(await admin.info('server'))![1]!;
  versions.set(admin, known);
  return known;
}
