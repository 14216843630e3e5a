import { FixedArgs, type Arg, type Value } from './wire/fixed-args.js';
import type { QueueKeyName, ScriptKeyName } from './keys.js';
import { FILES, KEYS, TEXTS } from './scripts/generated.js';

/**
 * The descriptor of one Lua script. The linker and the engine derive from it: the prologue with its local variables, the order
 * of arguments, their types in TypeScript, and how the reply is read.
 *
 * The body and the fragments it needs name any key as `key_<name>`, and the linker notes which keys those are. So no script
 * contains `KEYS[3]`, and no list of keys is written by hand. `KEYS[at_letter + string.byte(letter)]` is the key of a letter in
 * `LETTERED_JOBS`. The body reads `arg_<name>` for each argument (a number for `int`, else a string). For each list it reads
 * `<name>_first` and `<name>_last`, the range of its values in ARGV (empty: last < first). Keys that a call adds, such as one per
 * worker, are `more_first` to `more_last` in KEYS.
 */
interface ScriptShape<N extends string, A extends ArgTypes, L extends string, Reply> {
  readonly name: N;
  /**
   * Whether the script may run when Redis has reached `maxmemory`. `allow`: it runs, because it frees memory or moves jobs.
   * `refuse`: it fails before it starts. `read`: it writes nothing.
   */
  readonly memory: 'allow' | 'refuse' | 'read';
  /** Only of a script that uses keys without naming them. */
  readonly keys?: readonly ScriptKeyName[];
  readonly args: A;
  /** Lists of values. They follow the arguments in this order. */
  readonly lists?: readonly L[];
  /**
   * Keys that are given once for each of several queues, after the named ones: `for i = more_first, more_last, queue_step`
   * visits the queues, and `KEYS[i + at_<name>]` is a key of that queue.
   */
  readonly keysOfQueues?: readonly QueueKeyName[];
  readonly reply: (raw: any) => Reply;
}

/**
 * `digits`: a number that stays text in Lua, because it is passed on to Redis. Redis takes numbers from a script as text, and
 * formatting one with `%.17g` costs as much as a command.
 */
export type ArgTypes = Readonly<Record<string, 'int' | 'digits' | 'text'>>;
export type ArgValues<A extends ArgTypes> = {
  readonly [N in keyof A]: A[N] extends 'text' ? string : number;
};
export type { Value };
export type KeyValues<K extends ScriptKeyName> = { readonly [N in K]: string };
export type ListValues<L extends string> = { readonly [N in L]: readonly Value[] };

/** The keys that the script with this name gets. */
type KeysOf<N extends string> = N extends keyof typeof KEYS ? (typeof KEYS)[N][number] : never;

export interface Script<K extends ScriptKeyName, A extends ArgTypes, L extends string, Reply> {
  readonly name: string;
  readonly memory: 'allow' | 'refuse' | 'read';
  readonly keys: readonly K[];
  readonly keysOfQueues: readonly QueueKeyName[];
  readonly text: string;
  readonly sha: string;
  readonly reply: (raw: any) => Reply;
  /** All arguments of `EVALSHA`: the script, the number of keys, keys, arguments, lists. */
  encode(keys: KeyValues<K>, args: ArgValues<A>, lists: ListValues<L>, more?: readonly string[]): Value[];
  /** The arguments that many calls start with: the script and its first keys. They are encoded once per object of keys. */
  fix(keys: Partial<KeyValues<K>>): FixedArgs;
  /** The fixed arguments, then the other keys in order, arguments and lists. Gives the same as `encode`. */
  encodeBehind(fixed: FixedArgs, keys: readonly string[], args: ArgValues<A>, lists: ListValues<L>): Arg[];
}

export type AnyScript = Script<any, any, any, unknown>;

/** The parts of a script that the linker needs. */
export type SomeShape = ScriptShape<string, ArgTypes, string, unknown>;

const registry = new Map<string, AnyScript>();
const shapes: SomeShape[] = [];

/** All scripts: for preloading, for tests, and for the minimal ACL user. */
export function allScripts(): readonly AnyScript[] {
  return [...registry.values()];
}

/** The descriptors of all scripts, for the linker. */
export function allShapes(): readonly SomeShape[] {
  return shapes;
}

export function defineScript<const N extends string, const A extends ArgTypes, const L extends string, Reply>(
  shape: ScriptShape<N, A, L, Reply>,
): Script<KeysOf<N>, A, L, Reply> {
  type K = KeysOf<N>;
  const { text, sha } = TEXTS[shape.name] ?? { text: '', sha: '' };
  const keyNames = (KEYS as Readonly<Record<string, readonly ScriptKeyName[]>>)[shape.name] as readonly K[];
  const argNames = Object.keys(shape.args);
  const listNames = shape.lists ?? [];
  const append = <Out extends Arg>(out: (Out | Value)[], args: ArgValues<A>, lists: ListValues<L>) => {
    for (const name of argNames) out.push(args[name as keyof A]);
    for (const name of listNames) out.push(lists[name].length);
    for (const name of listNames) {
      const values = lists[name];
      for (let i = 0; i < values.length; i++) out.push(values[i]!);
    }
    return out;
  };
  const fixed = new WeakMap<object, FixedArgs>();
  const script: Script<K, A, L, Reply> = {
    name: shape.name,
    memory: shape.memory,
    keys: keyNames,
    keysOfQueues: shape.keysOfQueues ?? [],
    text,
    sha,
    reply: shape.reply,
    encode(keys, args, lists, more) {
      const out: Value[] = [sha, keyNames.length + (more?.length ?? 0)];
      for (const name of keyNames) out.push(keys[name]);
      if (more) for (const key of more) out.push(key);
      return append(out, args, lists);
    },
    fix(keys) {
      const made = fixed.get(keys);
      if (made) return made;
      const known = keyNames.filter((name) => keys[name] !== undefined);
      if (known.some((name, i) => name !== keyNames[i])) throw new Error(`not the first of ${shape.name}`);
      const args = new FixedArgs([sha, keyNames.length, ...known.map((name) => keys[name]!)]);
      fixed.set(keys, args);
      return args;
    },
    encodeBehind(first, keys, args, lists) {
      const out: Arg[] = [first];
      for (const key of keys) out.push(key);
      return append(out, args, lists);
    },
  };
  if (registry.has(script.name)) throw new Error(`script ${script.name} is defined twice`);
  registry.set(script.name, script);
  shapes.push(shape);
  return script;
}

/** The map of a list of names and values alternately, as Redis sends the fields of a hash. */
export function mapOf(list: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (let i = 0; i < list.length; i += 2) found.set(list[i]!, list[i + 1]!);
  return found;
}

/** How Redis reports where a script failed: `… script: <sha>, on @user_script:12.` Valkey 9 leaves out the sha. */
const PLACE = / script: (?:([0-9a-f]{40}), )?on @user_script:(\d+)\.?$/;

/** The message of Redis, with our file and line instead of the line that Redis reports. `verb`: the call, usually the name of the script. */
export function withSource(message: string, verb: string): string {
  const [place, sha, line] = PLACE.exec(message) ?? [];
  const script = place && (sha ? [...registry.values()].find((one) => one.sha === sha) : registry.get(verb));
  if (!script) return message;
  return (
    message
      .slice(0, -place.length)
      .replaceAll(/\buser_script:(\d+)/g, (_, its: string) => sourceOf(script.name, Number(its))) +
    ` (script ${script.name}, ${sourceOf(script.name, Number(line))})`
  );
}

/** The file and line where a line of a linked script was written: `shared/line.lua:12`. Lines count from 1. */
export function sourceOf(name: string, line: number): string {
  let left = line;
  for (const piece of TEXTS[name]!.sources.split(' ')) {
    const [file, first, count] = piece.split('.').map(Number) as [number, number, number];
    if (left <= count) return file === 0 ? `${name}.ts:1` : `${FILES[file]!}.lua:${first + left - 1}`;
    left -= count;
  }
  return `line ${line}`;
}
