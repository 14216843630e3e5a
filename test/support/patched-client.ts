import { createHash } from 'node:crypto';
import { Redis, type Command, type RedisOptions } from 'ioredis';
import { allScripts } from '#lib/engine/script.js';

/** The text a script is run with instead of its own; the same text where it is left as it is. */
export type Patch = (name: string, text: string) => string;

/** The name of a script or of a command, its arguments, and what sends it. */
export type Around = (
  name: string,
  send: () => Promise<unknown>,
  args: readonly unknown[],
) => Promise<unknown>;

export interface PatchedClientOptions {
  readonly patch?: Patch;
  /** Stands between the caller and Redis, for each call of a script: may call `send` later, drop its answer, or not call it. */
  readonly around?: Around;
  /** Other commands that it stands before too, by their names. */
  readonly commands?: readonly string[];
  readonly redis?: RedisOptions;
}

interface Patched {
  readonly name: string;
  readonly text: string;
  readonly sha: string;
}

/**
 * For the `connection` option: clients on which our scripts run with other texts than their own. The library needs no hook
 * for it, and what is tested is what is published, but for what the patch says.
 */
export function patchedClient(url: string, options: PatchedClientOptions): (role: string) => Redis {
  let table: Map<string, Patched> | undefined;
  return (role) => {
    // Here, so that a patch that no longer fits fails the start of the engine, and not each call of it.
    const patches = (table ??= patchTable(options.patch ?? ((_, text) => text)));
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

/** By the sha and by the text that the library sends. */
function patchTable(patch: Patch): Map<string, Patched> {
  const table = new Map<string, Patched>();
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

/** Time as a number of ms in a key of the queue, `clock`: then a test moves it, and nothing has to wait. */
export const virtualClock: Patch = (_, text) =>
  text.replaceAll("redis.call('TIME')", `read_clock()`).replace('\n', `\n${READ_CLOCK}\n`);

// One line, so that the numbers of lines in error messages are off by one only.
const READ_CLOCK =
  "local function read_clock() local ms = tonumber(redis.call('GET', string.match(KEYS[1], '^.-}:') .. 'clock')) " +
  'return { math.floor(ms / 1000), ms % 1000 * 1000 } end';

/** A planted mistake: other parts in place of some of a script. */
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
