import '../../engine/redis-engine.js';
import { allScripts } from '../../engine/script.js';
import { atLeast } from '../../engine/wire/server-check.js';
import { type Command } from './context.js';
import { DONE } from './failure.js';
import { UsageError } from './usage-error.js';

export interface AclOptions {
  /** The prefix of `forRoot`. */
  readonly prefix: string;
  /** `producer`: adds, reads and changes jobs, but does not claim them. @default 'both' */
  readonly role?: string;
  /** Whether to include what only Redis Cluster needs. @default false */
  readonly cluster?: boolean;
  /** Version of the server. From 7.2 on, ioredis may send its name to the server. @default '7.0' */
  readonly redis?: string;
}

export const acl: Command = {
  name: 'acl',
  usage: '',
  about: 'prints the minimal ACL rules of a Redis user; does not connect to Redis',
  words: [0, 0],
  options: {
    role: { type: 'string', about: 'both or producer (default: both)' },
    redis: { type: 'string', about: 'version of the server (default: 7.0)' },
  },
  async run({ values, prefix, print }) {
    const { role = 'both', redis = '7.0' } = values as Record<string, string | undefined>;
    if (!['both', 'producer'].includes(role))
      throw new UsageError(`--role is both or producer, not ${JSON.stringify(role)}`, '');
    if (!/^\d+(\.\d+){0,2}$/.test(redis) || !atLeast(redis, [7, 0]))
      throw new UsageError(
        `--redis must be a version from 7.0 on, such as 7.2, got ${JSON.stringify(redis)}`,
        '',
      );
    const rules = aclRules({ prefix, role, redis, cluster: values['cluster'] === true });
    if (print.isJson) print.json(rules);
    else print.raw(`ACL SETUSER ${prefix} reset on >secret ${rules.join(' ')}\n`);
    return DONE;
  },
};

/** The commands that the library and ioredis send without a call of the user. HELLO and AUTH need no permission. */
const SENT = {
  /** Checking, naming and setting the clock of a connection, and running scripts. */
  always: ['client|setname', 'eval', 'evalsha', 'info', 'ping', 'time'],
  /**
   * Storing many jobs, keeping the list of queues, looking at workers, events and why a job was cancelled, and confirming that
   * replicas have a job.
   */
  adding: ['exec', 'hget', 'hset', 'multi', 'rpush', 'wait', 'xread', 'zadd', 'zrange', 'zrem', 'zscan'],
  /** Waking: listening to bells, ringing them, looking at what there is; claiming a round of upkeep. */
  working: ['bzpopmin', 'exists', 'pexpire', 'set', 'unlink', 'zadd'],
  /** Listing jobs by number of the page. */
  listing: ['lindex', 'llen', 'smembers', 'zcard'],
  /** Estimating how much memory a queue takes, for the dashboard. */
  measuring: ['memory|usage'],
  /** Auditing and repairing. SCAN lists the names of all keys, including those of other programs. */
  repairing: ['llen', 'scan'],
  /** Finding the owners of slots, and following a slot that migrates. */
  cluster: ['asking', 'cluster|slots'],
  /** Sent to every server; older ones do not have this command. */
  since72: ['client|setinfo'],
};

/** Scripts that are only run by workers, and by audits and repairs. */
const OF_WORKERS = new Set([
  'adopt',
  'audit',
  'audit-page',
  'beat',
  'claim',
  'claim-limited',
  'declare',
  'dispatch',
  'due-schedules',
  'exchange',
  'fire',
  'look',
  'note',
  'overdue',
  'overgrown',
  'promote',
  'recover',
  'register',
  'release',
  'renew',
  'repair',
  'report',
  'share',
  'trim',
  'unregister',
  'withdraw',
]);

/**
 * Rules for `ACL SETUSER`: the patterns of keys, and each command. A prefix cannot contain characters with a meaning in patterns.
 */
export function aclRules({ prefix, role = 'both', cluster = false, redis = '7.0' }: AclOptions): string[] {
  const works = role !== 'producer';
  const scripts = allScripts().filter(({ name }) => works || !OF_WORKERS.has(name));
  const commands = new Set<string>([
    ...SENT.always,
    ...SENT.adding,
    ...SENT.listing,
    ...SENT.measuring,
    ...(works ? [...SENT.working, ...SENT.repairing] : []),
    ...(cluster ? SENT.cluster : []),
    ...(atLeast(redis, [7, 2]) ? SENT.since72 : []),
    ...scripts.flatMap(({ text }) => commandsOf(text)),
  ]);
  return [
    `~{${prefix}:*`,
    `~{${prefix}}:bell:*`,
    `~{${prefix}}:processes*`,
    `~{${prefix}}:queues`,
    `~{${prefix}}:alerts`,
    `~{${prefix}}:actions`,
    `~{${prefix}}:bulkActs`,
    ...[...commands].toSorted().map((command) => `+${command}`),
  ];
}

/** Every command that the text of a script may run, as rules name it: `hget`, `xinfo|stream`. */
export function commandsOf(text: string): string[] {
  const calls = text.match(/redis\s*\.\s*p?call\b/g) ?? [];
  const named = [...text.matchAll(/redis\.p?call\('([A-Za-z]+)'(?:, '([A-Za-z]+)')?/g)];
  if (named.length !== calls.length)
    throw new Error('a script calls a command that it does not name in place');
  return named.map(([, command, sub]) => [command, sub].filter(Boolean).join('|').toLowerCase());
}
