import type { Redis } from 'ioredis';
import { aclRules } from '../../tools/acl.mjs';

const PASSWORD = 'secret';
/** The user of a server that one spec has for itself. */
const OWNER = 'godwit-test';

export interface TestUser {
  readonly url: string;
  readonly user: string;
}

/** `library`: exactly what the documentation says that the library needs. `all`: for tests of the tools, which run any command. */
export type Rights = 'library' | 'all';

/** A user per test tells its connections from those of spec files that run beside it, also from threads and children. */
export async function addUser(admin: Redis, prefix: string, rights: Rights): Promise<TestUser> {
  const user = `test-${prefix}`;
  const few = async () => aclRules({ prefix, redis: await versionOf(admin) });
  const rules = rights === 'all' ? nearlyAll(prefix) : await few();
  await admin.call('ACL', 'SETUSER', user, 'reset', 'on', `>${PASSWORD}`, ...rules);
  return { url: urlOf(`redis://${admin.options.host}:${admin.options.port}`, user), user };
}

/** Options with which a server of its own starts, so that the user is there again after a restart. */
export function ownerArgs(cluster = false): string[] {
  const commands = aclRules({ prefix: '', cluster }).filter((rule) => rule.startsWith('+'));
  return ['--user', OWNER, 'on', `>${PASSWORD}`, '~{*', ...commands];
}

export function ownerOf(serverUrl: string): TestUser {
  return { url: urlOf(serverUrl, OWNER), user: OWNER };
}

/** What the server refused this user, as sentences. */
export async function refusals(admin: Redis, user: string): Promise<string[]> {
  const log = (await admin.call('ACL', 'LOG', 128)) as (string | number)[][];
  return (
    log
      .map((flat) => new Map(flat.map((value, i) => [value, flat[i + 1]])))
      .filter((entry) => entry.get('username') === user && entry.get('reason') !== 'auth')
      // Since 7.2 ioredis sends its name to every server, whether it may or not.
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

async function versionOf(admin: Redis): Promise<string> {
  return /^redis_version:(\S+)/m.exec(await admin.info('server'))![1]!;
}
