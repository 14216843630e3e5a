import { SCRIPT_KEYS, type ScriptKeyName } from '../../lib/engine/keys.js';
import type { SomeShape } from '../../lib/engine/script.js';
import { faultsOf, isBuiltIn, LuaError, type LuaFile, type LuaFunction } from './file.js';
import { keysIn, prologueOf, type Prologue } from './prologue.js';
import type { FreeName, Step } from './syntax.js';

/** One line of a script as Redis receives it, and where it was written; `file` is empty if it comes from the descriptor. */
export interface LinkedLine {
  readonly text: string;
  readonly file: string;
  readonly line: number;
}

export interface Linked {
  readonly name: string;
  readonly lines: readonly LinkedLine[];
  /** The same text, but with the names of keys and arguments. */
  readonly named: readonly LinkedLine[];
  /** The keys that the script gets, in this order. */
  readonly keys: readonly ScriptKeyName[];
  /** The functions of fragments that the script contains. */
  readonly functions: readonly LuaFunction[];
}

type Library = ReadonlyMap<string, LuaFile>;

/**
 * Links a script: its own text, and each function of a fragment that it needs, once. A function is placed before the first
 * statement that needs it. If only one branch needs it, it is placed inside that branch, because Lua creates a function each time
 * it executes its definition.
 */
export function link(shape: SomeShape, library: Library): Linked {
  return new Linker(shape, library).run();
}

class Linker {
  private readonly main: LuaFile;
  /** At first with all keys. When the text is complete, with those that it names. */
  private prologue: Prologue;
  /** Functions by name; dependencies come first. */
  private readonly linked = new Map<string, LuaFunction>();
  private readonly needs = new Map<LuaFunction, readonly LuaFunction[]>();

  constructor(
    private readonly shape: SomeShape,
    private readonly library: Library,
  ) {
    this.main = fileOf(library, shape.name);
    this.prologue = prologueOf(shape, SCRIPT_KEYS);
  }

  run(): Linked {
    const sites = new Map<LuaFunction, readonly Step[]>();
    const place = (needed: LuaFunction, path: readonly Step[]) => {
      const other = sites.get(needed);
      sites.set(needed, other ? meeting(other, path) : path);
    };
    for (const free of this.main.names.free) {
      const needed = this.resolve(this.main, free);
      if (!needed) continue;
      this.include(needed, []);
      place(needed, this.whereLineBegins(free.path));
    }
    const functions = [...this.linked.values()];
    for (const each of functions.toReversed())
      for (const needed of this.needs.get(each)!) place(needed, sites.get(each)!);
    for (const { name, line } of this.main.names.declarations) {
      if (this.linked.has(name))
        throw new LuaError(
          `${this.main.name}.lua:${line}: ${name} is a function of a fragment that it needs`,
        );
    }
    const named = this.layOut(functions, sites);
    const keys = this.shape.keys ?? keysIn(named.map(({ text }) => text).join('\n'));
    this.prologue = prologueOf(this.shape, keys);
    return {
      name: this.shape.name,
      named,
      keys,
      lines: named.map((line) => ({ ...line, text: this.inSlots(line) })),
      functions,
    };
  }

  private include(wanted: LuaFunction, callers: readonly LuaFunction[]): void {
    if (callers.includes(wanted)) {
      const circle = [...callers.slice(callers.indexOf(wanted)), wanted].map(({ name }) => name);
      throw new LuaError(
        `${wanted.file.name}.lua: functions call each other in a cycle: ${circle.join(' -> ')}`,
      );
    }
    if (this.needs.has(wanted)) return;
    const other = this.linked.get(wanted.name);
    if (other)
      throw new LuaError(`${wanted.file.name}.lua and ${other.file.name}.lua both have ${wanted.name}`);
    const needed = new Set<LuaFunction>();
    for (const free of wanted.free) {
      const found = this.resolve(wanted.file, free);
      if (found) needed.add(found);
    }
    for (const each of needed) this.include(each, [...callers, wanted]);
    this.needs.set(wanted, [...needed]);
    this.linked.set(wanted.name, wanted);
  }

  /** The function of a fragment with this name; null for names that Lua, Redis or the descriptor defines. */
  private resolve(file: LuaFile, { name, line }: FreeName): LuaFunction | null {
    if (isBuiltIn(name) || this.prologue.names.has(name) || this.prologue.locals.has(name)) return null;
    const found = functionsSeenBy(file, this.library).get(name);
    if (found) return found;
    throw new LuaError(`${file.name}.lua:${line}: ${name} is not defined in the script ${this.shape.name}`);
  }

  /** A function cannot be placed before a statement that is not the first one in its line. */
  private whereLineBegins(path: readonly Step[]): readonly Step[] {
    const begins = ({ block, index }: Step) => {
      const { line, column } = block[index]!.loc!.start;
      const before = this.main.indents[line - 1]!;
      return column <= before;
    };
    let length = path.length;
    while (length > 1 && !begins(path[length - 1]!)) length -= 1;
    return path.slice(0, length);
  }

  private layOut(
    functions: readonly LuaFunction[],
    sites: ReadonlyMap<LuaFunction, readonly Step[]>,
  ): LinkedLine[] {
    const inFrontOf = new Map<number, LuaFunction[]>();
    for (const each of functions) {
      const { block, index } = sites.get(each)!.at(-1)!;
      const { line } = block[index]!.loc!.start;
      inFrontOf.set(line, [...(inFrontOf.get(line) ?? []), each]);
    }
    const lines: { -readonly [N in keyof LinkedLine]: LinkedLine[N] }[] = this.prologue.lines.map((text) => ({
      text,
      file: '',
      line: 0,
    }));
    const add = (file: LuaFile, first: number, last: number) => {
      for (let line = first; line <= last; line++) {
        const text = file.lines[line - 1]!;
        if (text === '') continue;
        const before = lines.at(-1)!;
        if (before.file === file.name && belongsTo(before.text, text)) before.text += ` ${text}`;
        else lines.push({ text, file: file.name, line });
      }
    };
    for (let line = 1; line <= this.main.lines.length; line++) {
      for (const { file, first, last } of inFrontOf.get(line) ?? []) add(file, first, last);
      add(this.main, line, line);
    }
    return lines;
  }

  private inSlots({ text, file, line }: LinkedLine): string {
    const { names, types } = this.prologue;
    const typed = text.replaceAll(/\bcheck_types\((key_[^()]*)\)/g, (_, keys: string) => {
      const pairs = keys.split(', ').map((key) => {
        const type = types.get(key);
        if (!type) throw new LuaError(`${file}.lua:${line}: ${key} is no key of ${this.shape.name}`);
        return `${key}, '${type}'`;
      });
      return `check_types(${pairs.join(', ')})`;
    });
    return typed.replaceAll(/\b[a-z]+_\w+\b/g, (name) => names.get(name) ?? name);
  }
}

/**
 * A line that closes a block or continues a statement is appended to the line before it. An error in it is then reported for
 * the first of these lines.
 */
export function belongsTo(before: string, text: string): boolean {
  return /^(end\b|\.\.|and\b|or\b)/.test(text) || /(,|\(|\{|\band|\bor|\.\.|=)$/.test(before);
}

/** The last statement that precedes or contains both, or is one of them. */
function meeting(a: readonly Step[], b: readonly Step[]): readonly Step[] {
  const path: Step[] = [];
  for (let i = 0; i < a.length && i < b.length; i++) {
    const [left, right] = [a[i]!, b[i]!];
    if (left.block !== right.block) break;
    if (left.index !== right.index) {
      path.push(left.index < right.index ? left : right);
      break;
    }
    path.push(left);
  }
  return path;
}

const seen = new WeakMap<Library, Map<LuaFile, ReadonlyMap<string, LuaFunction>>>();

function functionsSeenBy(file: LuaFile, library: Library): ReadonlyMap<string, LuaFunction> {
  const byFile = seen.get(library) ?? new Map<LuaFile, ReadonlyMap<string, LuaFunction>>();
  seen.set(library, byFile);
  const known = byFile.get(file);
  if (known) return known;
  const functions = [...file.functions, ...file.needs.flatMap((name) => fileOf(library, name).functions)];
  const found = new Map(functions.map((each) => [each.name, each]));
  byFile.set(file, found);
  return found;
}

function fileOf(library: Library, name: string): LuaFile {
  const file = library.get(name);
  if (!file) throw new LuaError(`there is no ${name}.lua`);
  return file;
}

/** The mistakes in single files and in their references to each other. Scripts may still fail to link. */
export function faultsIn(library: Library): string[] {
  const faults: string[] = [];
  for (const file of library.values()) {
    const needed = new Set<string>();
    for (const name of file.needs) {
      const { functions } = fileOf(library, name);
      for (const each of functions) needed.add(each.name);
      const isUsed = functions.some((each) => file.names.free.some((free) => free.name === each.name));
      if (!isUsed) faults.push(`${file.name}.lua:1: needs ${name} but calls none of its functions`);
    }
    faults.push(...faultsOf(file, needed));
    const circle = circleOf(file, library, []);
    if (circle)
      faults.push(`${file.name}.lua:1: fragments need each other in a cycle: ${circle.join(' -> ')}`);
  }
  return faults;
}

function circleOf(file: LuaFile, library: Library, path: readonly string[]): string[] | null {
  if (path.includes(file.name)) return path[0] === file.name ? [...path, file.name] : null;
  for (const name of file.needs) {
    const circle = circleOf(fileOf(library, name), library, [...path, file.name]);
    if (circle) return circle;
  }
  return null;
}
