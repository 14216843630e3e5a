import { GodwitError } from '../../errors.js';
import { quoted } from '../../job/text.js';
import { checkUrl, DEFAULT_CONNECTION } from '../../options/connection.js';
import { checkKey, MAX_BATCH } from '../../options/dispatcher-options.js';
import { readArguments } from './read-arguments.js';
import { UsageError } from './usage-error.js';

export const DISPATCH_HELP = `Usage: godwit dispatch [options]

Moves due tasks from a sorted set (ZADD set ready-at task) to a list (BLPOP list), in the order of their
due times. Each task moves exactly once, however many dispatchers run. Scores are unix seconds by the clock
of Redis, and may have fractions.

Options:
  -u, --redis-url <url>               URL of Redis (default: ${DEFAULT_CONNECTION})
  -d, --delayed-task-zset-key <key>   the sorted set (default: delayedtaskset)
  -r, --ready-task-list-key <key>     the list (default: readytasklist)
  -n, --batch-size <n>                tasks moved by one call, 1 to ${MAX_BATCH} (default: 10)
  -v, --verbose                       print a line for each call: tasks dispatched, tasks left in the set,
                                      tasks in the list, seconds until the next call
  -h, --help                          print this text

While tasks are due, it calls again at once. When none is due it waits 0, 1, 1, 2, 3, 5, 8, 13, 13, ...
seconds, or until the next task is due if that is sooner. The waits start over once a task was moved.

While Redis cannot be reached it prints that, and continues when Redis is back. It ends within a second
of SIGINT or SIGTERM, but not before the lookup of a host name has ended. Exit codes: 0 after such a
signal, 1 if a key has another type or Redis refuses the user, 2 for wrong arguments.
`;

export interface DispatchOptions {
  readonly url: string;
  readonly delayedKey: string;
  readonly readyKey: string;
  readonly batchSize: number;
  readonly verbose: boolean;
}

/**
 * The options of the command, or `help`.
 *
 * @throws {UsageError}
 */
export function readDispatchOptions(args: string[]): DispatchOptions | 'help' {
  const values = parse(args);
  if (values.help) return 'help';
  const {
    'redis-url': url = DEFAULT_CONNECTION,
    'delayed-task-zset-key': delayedKey = 'delayedtaskset',
    'ready-task-list-key': readyKey = 'readytasklist',
    'batch-size': batchSize = '10',
    verbose = false,
  } = values;
  if (delayedKey === readyKey) {
    throw refusal('--ready-task-list-key must be another key than --delayed-task-zset-key');
  }
  return {
    url: checked(() => checkUrl(url, '--redis-url')),
    delayedKey: checked(() => checkKey(delayedKey, '--delayed-task-zset-key')),
    readyKey: checked(() => checkKey(readyKey, '--ready-task-list-key')),
    batchSize: batch(batchSize),
    verbose,
  };
}

const OPTIONS = {
  'redis-url': { type: 'string', short: 'u' },
  'delayed-task-zset-key': { type: 'string', short: 'd' },
  'ready-task-list-key': { type: 'string', short: 'r' },
  'batch-size': { type: 'string', short: 'n' },
  verbose: { type: 'boolean', short: 'v' },
  help: { type: 'boolean', short: 'h' },
} as const;
const USAGE = 'see godwit dispatch --help';

function parse(args: string[]) {
  const { values, words } = readArguments(args, OPTIONS, USAGE);
  if (words.length > 0) throw refusal(`unexpected argument ${quoted(words[0]!.slice(0, 100))}`);
  return values;
}

function batch(text: string): number {
  const size = /^\d+$/.test(text) ? Number(text) : 0;
  if (size >= 1 && size <= MAX_BATCH) return size;
  throw refusal(
    `--batch-size must be a whole number from 1 to ${MAX_BATCH}, got ${quoted(text.slice(0, 100))}`,
  );
}

/** Returns the result of the function. Errors of the library are wrong use. */
function checked<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof GodwitError ? refusal(error.message) : error;
  }
}

function refusal(message: string): UsageError {
  return new UsageError(message, USAGE);
}
