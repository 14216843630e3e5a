import ts from 'typescript';
import { parse, type SourceFile } from './sources.js';

/** An error that users may see: the name of its class and its code. */
export interface ErrorEntry {
  readonly name: string;
  readonly code: string;
}

/** The exported classes of a file that have a code, as `readonly code = 'GODWIT_…'`. */
export function errorsIn(file: SourceFile): ErrorEntry[] {
  return parse(file).statements.flatMap((statement) => {
    if (!ts.isClassDeclaration(statement) || !statement.name || !isExported(statement)) return [];
    const member = statement.members.find(
      (one) => ts.isPropertyDeclaration(one) && one.name.getText() === 'code',
    );
    const value = member && ts.isPropertyDeclaration(member) ? member.initializer : undefined;
    return value && ts.isStringLiteral(value) ? [{ name: statement.name.text, code: value.text }] : [];
  });
}

function isExported(statement: ts.ClassDeclaration): boolean {
  return statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

/** The rows of Markdown tables that name an error: one cell has its code, another the name of its class. */
export function errorRowsIn(markdown: string): ErrorEntry[] {
  return markdown.split('\n').flatMap((line) => {
    if (!line.trimStart().startsWith('|')) return [];
    const words = [...line.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);
    const code = words.find((word) => /^GODWIT_[A-Z_]+$/.test(word));
    const name = words.find((word) => /^[A-Z]\w*Error$/.test(word));
    return code ? [{ name: name ?? '(no class named)', code }] : [];
  });
}
