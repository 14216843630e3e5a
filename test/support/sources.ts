import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A file of the project: its text, and its path from the root with slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly from: string;
  /** Whether the import disappears in the compiled code. */
  readonly typeOnly: boolean;
  /** Imported names; empty for `import 'x'`, `['*']` for a whole module. */
  readonly names: readonly string[];
}

const NOT_OURS = new Set(['node_modules', 'dist', 'coverage', '.git']);

/** Every file with one of these endings under a folder of the project; an empty list if there is no such folder. */
export function sourcesIn(folder: string, endings: readonly string[]): SourceFile[] {
  return walk(join(ROOT, folder))
    .filter((path) => endings.some((ending) => path.endsWith(ending)))
    .map((path) => ({ path: relative(ROOT, path).split(sep).join('/'), text: readFileSync(path, 'utf8') }));
}

function walk(folder: string): string[] {
  let entries;
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return entries.flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? walk(path) : [path];
  });
}

export function parse({ path, text }: SourceFile): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}

/** Everything a file imports: `import`, `export … from`, `import()` and `import('x').Type`. */
export function importsOf(file: SourceFile): Import[] {
  const found: Import[] = [];
  const visit = (node: ts.Node): void => {
    const one = importAt(node);
    if (one) found.push(one);
    ts.forEachChild(node, visit);
  };
  visit(parse(file));
  return found;
}

function importAt(node: ts.Node): Import | undefined {
  if (ts.isImportDeclaration(node)) return fromDeclaration(node.moduleSpecifier, node.importClause);
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) return fromExport(node, node.moduleSpecifier);
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return fromLiteral(node.argument.literal, true, ['*']);
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    return fromLiteral(node.arguments[0], false, ['*']);
  }
  return undefined;
}

function fromDeclaration(specifier: ts.Expression, clause: ts.ImportClause | undefined): Import | undefined {
  const bindings = clause?.namedBindings;
  const elements = bindings && ts.isNamedImports(bindings) ? [...bindings.elements] : [];
  const names = elements.map((element) => (element.propertyName ?? element.name).text);
  if (clause?.name) names.push('default');
  if (bindings && ts.isNamespaceImport(bindings)) names.push('*');
  const whole = clause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
  const each =
    names.length > 0 && names.length === elements.length && elements.every((element) => element.isTypeOnly);
  return fromLiteral(specifier, whole || each, names);
}

function fromExport(node: ts.ExportDeclaration, specifier: ts.Expression): Import | undefined {
  const clause = node.exportClause;
  const elements = clause && ts.isNamedExports(clause) ? [...clause.elements] : [];
  const names = elements.map((element) => (element.propertyName ?? element.name).text);
  const each = elements.length > 0 && elements.every((element) => element.isTypeOnly);
  return fromLiteral(specifier, node.isTypeOnly || each, elements.length > 0 ? names : ['*']);
}

function fromLiteral(node: ts.Node | undefined, typeOnly: boolean, names: string[]): Import | undefined {
  return node && ts.isStringLiteralLike(node) ? { from: node.text, typeOnly, names } : undefined;
}
