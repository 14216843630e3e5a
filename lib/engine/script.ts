import { FixedArgs, type Arg, type Value } from './wire/fixed-args.js';
import type { KeyName, TaskKeyName } from './keys.js';
import { FILES, TEXTS } from './scripts/generated.js';

export type ScriptKeyName = KeyName | TaskKeyName;

/**
 * One Lua script, described once. From the descriptor come the prologue with its locals, the number and order of keys
 * and arguments, their types here, and the reading of the answer; `KEYS[3]` is written nowhere by hand.
 *
 * The body reads `key_<name>` for each key, `arg_<name>` for each argument (a number for `int`, else a string), and for
 * each list `<name>_first` and `<name>_last`, the range of its values in ARGV (empty: last < first). Where the keys have
 * `LETTERED_JOBS`, `KEYS[at_letter + string.byte(letter)]` is that of a letter.
 */
export interface ScriptShape<K extends ScriptKeyName, A extends ArgTypes, L extends string, Reply> {
  readonly name: string;
  /**
   * `allow`: may run at maxmemory, since it frees or moves. `refuse`: fails there before it starts. `read`: writes nothing.
   */
  readonly memory: 'allow' | 'refuse' | 'read';
  readonly keys: readonly K[];
  readonly args: A;
  /** Values of varying number; they follow the arguments in this order. */
  readonly lists?: readonly L[];
  /** Whether further keys, one per worker, follow the named ones (`more_first`, `more_last` in KEYS). */
  readonly moreKeys?: boolean;
  /**
   * Keys that come once for each of several queues, behind the named ones: `for i = queue_first, queue_last, queue_step` goes
   * through the queues, and `KEYS[i + at_<name>]` is such a key of that queue.
   */
  readonly keysOfQueues?: readonly KeyName[];
  readonly reply: (raw: any) => Reply;
}

/**
 * `digits`: a number that stays text, as it mostly goes on to Redis: from a script it takes numbers as text, and writes them with
 * `%.17g`, which costs as much as a command.
 */
export type ArgTypes = Readonly<Record<string, 'int' | 'digits' | 'text'>>;
export type ArgValues<A extends ArgTypes> = {
  readonly [N in keyof A]: A[N] extends 'text' ? string : number;
};
export type { Value };
export type KeyValues<K extends ScriptKeyName> = { readonly [N in K]: string };
export type ListValues<L extends string> = { readonly [N in L]: readonly Value[] };

export interface Script<K extends ScriptKeyName, A extends ArgTypes, L extends string, Reply> {
  readonly name: string;
  readonly memory: 'allow' | 'refuse' | 'read';
  readonly keys: readonly K[];
  readonly keysOfQueues: readonly KeyName[];
  readonly text: string;
  readonly sha: string;
  readonly reply: (raw: any) => Reply;
  /** All that `EVALSHA` takes: the script, number of keys, keys, arguments, lists. */
  encode(keys: KeyValues<K>, args: ArgValues<A>, lists: ListValues<L>, more?: readonly string[]): Value[];
  /** The script and the first of its keys, for calls that all begin so: made once for an object of keys, which is kept. */
  fix(keys: Partial<KeyValues<K>>): FixedArgs;
  /** Those, and what follows them: the other keys in their order, arguments, lists. It is what `encode` answers too. */
  encodeBehind(fixed: FixedArgs, keys: readonly string[], args: ArgValues<A>, lists: ListValues<L>): Arg[];
}

export type AnyScript = Script<any, any, any, unknown>;

/** What the linker needs to know of a script. */
export type SomeShape = ScriptShape<ScriptKeyName, ArgTypes, string, unknown>;

const registry = new Map<string, AnyScript>();
const shapes: SomeShape[] = [];

/** Every script there is, for preloading, for the tests and for the minimal ACL user. */
export function allScripts(): readonly AnyScript[] {
  return [...registry.values()];
}

/** Their descriptors, for the linker. */
export function allShapes(): readonly SomeShape[] {
  return shapes;
}

export function defineScript<
  K extends ScriptKeyName,
  const A extends ArgTypes,
  const L extends string,
  Reply,
>(shape: ScriptShape<K, A, L, Reply>): Script<K, A, L, Reply> {
  const { text, sha } = TEXTS[shape.name] ?? { text: '', sha: '' };
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
    keys: shape.keys,
    keysOfQueues: shape.keysOfQueues ?? [],
    text,
    sha,
    reply: shape.reply,
    encode(keys, args, lists, more) {
      const out: Value[] = [sha, shape.keys.length + (more?.length ?? 0)];
      for (const name of shape.keys) out.push(keys[name]);
      if (more) for (const key of more) out.push(key);
      return append(out, args, lists);
    },
    fix(keys) {
      const made = fixed.get(keys);
      if (made) return made;
      const known = shape.keys.filter((name) => keys[name] !== undefined);
      if (known.some((name, i) => name !== shape.keys[i])) throw new Error(`not the first of ${shape.name}`);
      const args = new FixedArgs([sha, shape.keys.length, ...known.map((name) => keys[name]!)]);
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

/** How Redis says where a script failed: `… script: <sha>, on @user_script:12.` */
const PLACE = / script: ([0-9a-f]{40}), on @user_script:(\d+)\.?$/;

/** The message of Redis with the file and line of ours in the place of the line that Redis tells. */
export function withSource(message: string): string {
  const [place, sha, line] = PLACE.exec(message) ?? [];
  const script = place && [...registry.values()].find((one) => one.sha === sha);
  if (!script) return message;
  return (
    message
      .slice(0, -place.length)
      .replaceAll(/\buser_script:(\d+)/g, (_, its: string) => sourceOf(script.name, Number(its))) +
    ` (script ${script.name}, ${sourceOf(script.name, Number(line))})`
  );
}

/** Where a line of a script's text was written: `shared/line.lua:12`. Lines count from 1. */
export function sourceOf(name: string, line: number): string {
  let left = line;
  for (const piece of TEXTS[name]!.sources.split(' ')) {
    const [file, first, count] = piece.split('.').map(Number) as [number, number, number];
    if (left <= count) return file === 0 ? `${name}.ts:1` : `${FILES[file]!}.lua:${first + left - 1}`;
    left -= count;
  }
  return `line ${line}`;
}
