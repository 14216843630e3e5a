import luaparse from 'luaparse';
import type { FunctionDeclaration } from 'luaparse';
import { lineOf, namesIn, type FreeName, type Names } from './syntax.js';

/** One file of Lua: a script, or a fragment (`shared/…`) with functions that scripts and other fragments call. */
export interface LuaFile {
  /** Name without the ending: `exchange`, `shared/line`. */
  readonly name: string;
  /** The fragments whose functions it calls, from its header `--@needs line, event`. */
  readonly needs: readonly string[];
  /** Each line as Redis receives it: without comments and indentation, or empty. */
  readonly lines: readonly string[];
  /** The number of blank columns at the beginning of each line. */
  readonly indents: readonly number[];
  readonly names: Names;
  /** Functions defined at the top level. */
  readonly functions: readonly LuaFunction[];
}

export interface LuaFunction {
  readonly name: string;
  readonly file: LuaFile;
  readonly first: number;
  readonly last: number;
  /** Names that it uses but does not declare, including other functions of its file. */
  readonly free: readonly FreeName[];
}

/** Names that Lua and Redis define for every script. */
const BUILT_IN = new Set(
  (
    'redis KEYS ARGV string table math struct cjson cmsgpack bit ' +
    'error ipairs next pairs pcall rawequal rawget rawset select tonumber tostring type unpack'
  ).split(' '),
);

/** The form of the names that the linker gives to keys, arguments and lists of a descriptor, and to rules. */
const GENERATED = /^(key|arg|rule|at|more|queue)_\w+$|_(first|last)$/;

export const isBuiltIn = (name: string) => BUILT_IN.has(name);

export class LuaError extends Error {}

export function parseLua(name: string, text: string): LuaFile {
  let chunk: luaparse.Chunk;
  try {
    chunk = luaparse.parse(text, { luaVersion: '5.1', locations: true, comments: true, ranges: true });
  } catch (error) {
    throw new LuaError(`${name}.lua: ${(error as Error).message}`, { cause: error });
  }
  const lines = withoutComments(text, chunk.comments ?? []);
  const functions: LuaFunction[] = [];
  const indents = text.split('\n').map((line) => line.length - line.trimStart().length);
  const file = { name, needs: needsOf(text), lines, indents, names: namesIn(chunk), functions };
  for (const node of chunk.body) {
    if (node.type !== 'FunctionDeclaration' || !isFragment(name)) continue;
    functions.push(functionOf(node, file));
  }
  if (isFragment(name) && functions.length < chunk.body.length) {
    const other = chunk.body.find(({ type }) => type !== 'FunctionDeclaration')!;
    throw new LuaError(
      `${name}.lua:${lineOf(other)}: a fragment may contain only functions, and no code that runs when it is included`,
    );
  }
  return file;
}

function isFragment(name: string): boolean {
  return name.startsWith('shared/');
}

function functionOf(node: FunctionDeclaration, file: LuaFile): LuaFunction {
  const { free } = namesIn({ type: 'Chunk', body: [node] });
  const { name } = node.identifier as luaparse.Identifier;
  return { name, file, first: lineOf(node), last: node.loc!.end.line, free };
}

function needsOf(text: string): string[] {
  const needs: string[] = [];
  for (const line of text.split('\n')) {
    const header = /^--@needs (.+)$/.exec(line);
    if (!header) break;
    needs.push(...header[1]!.split(', ').map((name) => `shared/${name}`));
  }
  return needs;
}

function withoutComments(text: string, comments: readonly luaparse.Comment[]): string[] {
  let rest = text;
  for (const comment of comments) {
    const [from, to] = (comment as unknown as { range: [number, number] }).range;
    rest = rest.slice(0, from) + rest.slice(from, to).replaceAll(/[^\n]/g, ' ') + rest.slice(to);
  }
  return rest.split('\n').map((line) => line.trim());
}

/**
 * Reports probable mistakes: names that are unused, that hide others, or that belong to another file. Undefined names
 * are found when scripts are linked.
 */
export function faultsOf(file: LuaFile, needed: ReadonlySet<string>): string[] {
  const faults: string[] = [];
  const fault = (line: number, text: string) => faults.push(`${file.name}.lua:${line}: ${text}`);
  const exported = new Set(file.functions.map(({ first, name }) => `${name}:${first}`));
  for (const { name, line, reads, shadows, kind } of file.names.declarations) {
    if (name.startsWith('_')) continue;
    if (reads === 0 && !exported.has(`${name}:${line}`)) fault(line, `${kind} ${name} is never read`);
    if (shadows) fault(line, `${kind} ${name} hides that of line ${shadows.line}`);
    if (needed.has(name)) fault(line, `${kind} ${name} hides a function of a fragment`);
    if (isBuiltIn(name) || GENERATED.test(name))
      fault(line, `${kind} ${name} has a name that the linker or Redis defines`);
  }
  for (const { name, line, isWrite } of file.names.free)
    if (isWrite) fault(line, `assigns ${name}, which it does not declare`);
  return faults;
}
