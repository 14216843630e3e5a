import { createHash } from 'node:crypto';
import { Redis, type Command, type RedisOptions } from 'ioredis';
import { allScripts } from '#lib/engine/script.js';

/** Returns the text to run instead of the script; the same text if it stays unchanged. */
export type Patch = (name: string, text: string) => string;

/** The name of a script or command, its arguments, and a function that sends it. */
export type Around = (
  name: string,
  send: () => Promise<unknown>,
  args: readonly unknown[],
) => Promise<unknown>;

interface PatchedClientOptions {
  readonly patch?: Patch;
  /**
   * Called for each call of a script instead of sending it. May call `send` later or not at all, and drop its answer.
   */
  readonly around?: Around;
  /** Names of other commands for which it is called too. */
  readonly commands?: readonly string[];
  readonly redis?: RedisOptions;
}

interface Patched {
  readonly name: string;
  readonly text: string;
  readonly sha: string;
}

/**
 * For the `connection` option: clients that run changed texts of the scripts. The library needs no hook for this, so
 * the published code is tested, except for what the patch changes.
 */
export function patchedClient(url: string, options: PatchedClientOptions): (role: string) => Redis {
  const { patch = unchanged } = options;
  return (role) => {
    // Patch here, so that a patch that no longer applies fails at the start of the engine and not at each call.
    const patches = tableOf(patch);
    const client = new Redis(url, { connectionName: `patched-${role}`, lazyConnect: true, ...options.redis });
    const send = client.sendCommand.bind(client);
    client.sendCommand = (command: Command, stream) => {
      const patched = apply(patches, command);
      const name = patched?.name ?? options.commands?.find((known) => known === command.name);
      if (!name || !options.around) return send(command, stream);
      return options.around(name, () => send(command, stream) as Promise<unknown>, command.args);
    };
    return client;
  };
}

const unchanged: Patch = (_, text) => text;
/** Patching all scripts takes longer than most tests of one, so it is done once for each patch. */
const tables = new WeakMap<Patch, Map<string, Patched>>();

/** Scripts by the hash and by the text that the library sends. */
function tableOf(patch: Patch): Map<string, Patched> {
  const known = tables.get(patch);
  if (known) return known;
  const table = new Map<string, Patched>();
  tables.set(patch, table);
  for (const { name, text, sha } of allScripts()) {
    const changed = patch(name, text);
    const entry = { name, text: changed, sha: createHash('sha1').update(changed).digest('hex') };
    table.set(sha, entry);
    table.set(text, entry);
  }
  return table;
}

function apply(table: Map<string, Patched>, command: Command): Patched | undefined {
  if (command.name !== 'evalsha' && command.name !== 'eval') return undefined;
  const patched = table.get(String(command.args[0]));
  if (patched) command.args[0] = command.name === 'evalsha' ? patched.sha : patched.text;
  return patched;
}

/** The second patch, after the first one if there is one. */
export function after(first: Patch | undefined, second: Patch): Patch {
  return first ? (name, text) => second(name, first(name, text)) : second;
}

/**
 * Replaces the time by a number of ms in the key `clock` of the queue: the test moves the clock, and nothing has to
 * wait.
 */
export const virtualClock: Patch = (_, text) =>
  text.replaceAll("redis.call('TIME')", `read_clock()`).replace('\n', `\n${READ_CLOCK}\n`);

// On one line, so that line numbers in error messages differ by one only.
const READ_CLOCK =
  "local function read_clock() local ms = tonumber(redis.call('GET', string.match(KEYS[1], '^.-}:') .. 'clock')) " +
  'return { math.floor(ms / 1000), ms % 1000 * 1000 } end';

/** A planted mistake: other text in place of parts of a script. */
export function instead(script: string, ...parts: readonly (readonly [string | RegExp, string])[]): Patch {
  return (name, text) => {
    if (name !== script) return text;
    let worse = text;
    for (const [good, bad] of parts) {
      const changed = worse.replace(good, bad);
      if (changed === worse) throw new Error(`${script}.lua does not say '${good}' any more`);
      worse = changed;
    }
    return worse;
  };
}
