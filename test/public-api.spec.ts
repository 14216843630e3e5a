import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { ENTRIES } from './support/entries.js';

/** One program for all entry points, because each would load the types of Nest again. */
const program = ts.createProgram(
  ENTRIES.map(({ types }) => types),
  {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    skipLibCheck: true,
    noEmit: true,
  },
);
const checker = program.getTypeChecker();

/** The names that users can import, from the published types: one line for each, with its kind. */
function publicNames(path: string): string[] {
  const source = program.getSourceFile(path);
  const module = source && checker.getSymbolAtLocation(source);
  if (!module) throw new Error(`${path} is not there or exports nothing: build first`);
  return checker
    .getExportsOfModule(module)
    .map((symbol) => `${kindOf(resolve(symbol))} ${symbol.name}`)
    .toSorted();
}

function resolve(symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function kindOf({ flags }: ts.Symbol): string {
  if (flags & ts.SymbolFlags.Class) return 'class';
  if (flags & ts.SymbolFlags.Function) return 'function';
  if (flags & ts.SymbolFlags.Enum) return 'enum';
  if (flags & ts.SymbolFlags.Variable) return 'const';
  return 'type';
}

describe.each(ENTRIES)('$name', ({ name, types, load }) => {
  const names = publicNames(types);

  it('exports these names; a change affects users, and belongs in the CHANGELOG', async () => {
    await expect(`${names.join('\n')}\n`).toMatchFileSnapshot(
      `${name.replace(/^[^/]+/, 'public-api').replace('/', '-')}.txt`,
    );
  });

  it('exports the same values at run time as in its types', async () => {
    const values = names.filter((line) => !line.startsWith('type '));
    expect(new Set(Object.keys(await load()))).toEqual(new Set(values.map((line) => line.split(' ')[1])));
  });
});
