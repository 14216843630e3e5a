// Prints the least that a Redis user needs for Godwit, generated from its scripts:
//   node tools/acl.mjs --prefix shop [--role producer] [--cluster] [--redis 7.2]
import { parseArgs } from 'node:util';
import '../dist/engine/redis-engine.js';
import { allScripts } from '../dist/engine/script.js';
import { isMain } from './programs.mjs';

/** What the library and ioredis send by themselves. HELLO and AUTH need no permission. */
const SENT = {
  /** Checking, naming and setting the clock of a connection, and running scripts. */
  always: ['client|setname', 'eval', 'evalsha', 'info', 'ping', 'time'],
  /** Storing many jobs, keeping the list of queues, looking at workers, events and why a job was cancelled, and confirming that replicas have a job. */
  adding: ['exec', 'hget', 'hset', 'multi', 'rpush', 'wait', 'xread', 'zadd', 'zrange', 'zrem', 'zscan'],
  /** Waking: listening to bells, ringing them, looking at what there is; claiming a round of upkeep. */
  working: ['bzpopmin', 'exists', 'pexpire', 'set', 'unlink', 'zadd'],
  /** Listing jobs by number of the page. */
  listing: ['lindex', 'llen', 'smembers', 'zcard'],
  /** Auditing and repairing: SCAN tells the names of all keys, whoever they belong to. */
  mending: ['llen', 'scan'],
  /** Finding the owners of slots, and following one that is on its way. */
  cluster: ['asking', 'cluster|slots'],
  /** Sent to every server; an older one knows no such command. */
  since72: ['client|setinfo'],
};

/** Scripts that only workers run, and those who audit and repair what workers left. */
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
  'trim',
  'unregister',
  'withdraw',
]);

/** @see acl.d.mts; a prefix holds no character that means something in a pattern */
export function aclRules({ prefix, role = 'both', cluster = false, redis = '7.0' }) {
  const works = role !== 'producer';
  const scripts = allScripts().filter(({ name }) => works || !OF_WORKERS.has(name));
  const commands = new Set([
    ...SENT.always,
    ...SENT.adding,
    ...SENT.listing,
    ...(works ? [...SENT.working, ...SENT.mending] : []),
    ...(cluster ? SENT.cluster : []),
    ...(atLeast72(redis) ? SENT.since72 : []),
    ...scripts.flatMap(({ text }) => commandsOf(text)),
  ]);
  return [
    `~{${prefix}:*`,
    `~{${prefix}}:bell:*`,
    `~{${prefix}}:processes*`,
    `~{${prefix}}:queues`,
    ...[...commands].toSorted().map((command) => `+${command}`),
  ];
}

/** Every command a script may run, as rules name it: `hget`, `xinfo|stream`. */
export function commandsOf(text) {
  const calls = text.match(/redis\s*\.\s*p?call\b/g) ?? [];
  const named = [...text.matchAll(/redis\.p?call\('([A-Za-z]+)'(?:, '([A-Za-z]+)')?/g)];
  if (named.length !== calls.length)
    throw new Error('a script calls a command that it does not name in place');
  return named.map(([, command, sub]) => [command, sub].filter(Boolean).join('|').toLowerCase());
}

function atLeast72(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 7 || (major === 7 && minor >= 2);
}

function main(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      prefix: { type: 'string', default: 'godwit' },
      role: { type: 'string', default: 'both' },
      cluster: { type: 'boolean', default: false },
      redis: { type: 'string', default: '7.0' },
    },
  });
  if (!['both', 'producer'].includes(values.role))
    throw new Error(`--role is both or producer, not ${values.role}`);
  console.log(`ACL SETUSER ${values.prefix} reset on >secret ${aclRules(values).join(' ')}`);
}

if (isMain(import.meta)) main(process.argv.slice(2));
