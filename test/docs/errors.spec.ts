import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { GodwitError } from '#lib/errors.js';
import { DEAD_REASONS } from '#lib/job/outcome.js';
import { RateLimited, Snooze } from '#lib/job/job.js';
import { ENTRIES } from '../support/entries.js';
import { ROOT, parse, type SourceFile } from '../support/sources.js';

const read = (path: string) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') });
const inLib = (folder: string) => readdirSync(join(ROOT, 'lib', folder));
/** The catalogue, its families, and the errors of each entry. */
const catalogue = () =>
  [
    'errors.ts',
    ...inLib('errors').map((file) => `errors/${file}`),
    ...inLib('subpaths/testing').map((file) => `subpaths/testing/${file}`),
  ]
    .filter((file) => existsSync(join(ROOT, 'lib', file)))
    .flatMap((file) => errorsIn(read(`lib/${file}`)));
const sorted = (entries: readonly ErrorEntry[]) =>
  entries.map(({ name, code }) => `${name} ${code}`).toSorted();

describe('the errors', () => {
  it('each have a code of their own, and are the rows of docs/reference/errors.md', () => {
    const rows = sorted(errorRowsIn(read('docs/reference/errors.md').text));
    expect(rows, 'the rows of docs/reference/errors.md').toEqual(sorted(catalogue()));
  });

  it('that are exported are those that the table is compared with', async () => {
    const modules = await Promise.all(ENTRIES.map(({ load }) => load()));
    const classes = modules
      .flatMap((exported) => Object.entries(exported))
      .filter(([, value]) => typeof value === 'function' && value.prototype instanceof GodwitError)
      // These are thrown as errors are, and nothing has failed.
      .filter(([, value]) => value !== Snooze && value !== RateLimited);
    const known = catalogue();
    expect(classes.map(([name]) => name).toSorted(), 'the exports of lib/errors.ts').toEqual(
      known.map(({ name }) => name).toSorted(),
    );
    expect(known.length).toBeGreaterThan(0);
  });

  it('have codes that are unique and say whose they are', () => {
    const codes = catalogue().map(({ code }) => code);
    expect(codes.filter((code) => !/^GODWIT_[A-Z]+(_[A-Z]+)*$/.test(code))).toEqual([]);
    expect(codes.filter((code, i) => codes.indexOf(code) !== i)).toEqual([]);
  });
});

describe('the reasons of dead jobs', () => {
  it('are the rows of their table', () => {
    const [, section] = read('docs/reference/errors.md').text.split('## Reasons of dead jobs\n');
    const reasons = [...section!.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, reason]) => reason!);
    expect(reasons.toSorted()).toEqual([...DEAD_REASONS].toSorted());
  });
});

describe('reading the table', () => {
  it('takes rows with a code, and nothing else', () => {
    const text = [
      'Text with `AError` and `GODWIT_A`.',
      '| Class | Code |',
      '|---|---|',
      '| `AError` | `GODWIT_A` | when `x` |',
      '| `GODWIT_B` | [`BError`](#b) |',
      '| `GODWIT_C` | lost |',
    ].join('\n');
    expect(sorted(errorRowsIn(text))).toEqual([
      '(no class named) GODWIT_C',
      'AError GODWIT_A',
      'BError GODWIT_B',
    ]);
  });

  it('takes exported classes with a code', () => {
    const text = `export class A extends E { readonly code = 'GODWIT_A'; }
      class Hidden extends E { readonly code = 'GODWIT_H'; }
      export abstract class E extends Error { abstract readonly code: string; }`;
    expect(errorsIn({ path: 'errors.ts', text })).toEqual([{ name: 'A', code: 'GODWIT_A' }]);
  });
});

/** An error that users may see: the name of its class and its code. */
interface ErrorEntry {
  readonly name: string;
  readonly code: string;
}

/** The exported classes of a file that have a code, as `readonly code = 'GODWIT_…'`. */
function errorsIn(file: SourceFile): ErrorEntry[] {
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
function errorRowsIn(markdown: string): ErrorEntry[] {
  return markdown.split('\n').flatMap((line) => {
    if (!line.trimStart().startsWith('|')) return [];
    const words = [...line.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);
    const code = words.find((word) => /^GODWIT_[A-Z_]+$/.test(word));
    const name = words.find((word) => /^[A-Z]\w*Error$/.test(word));
    return code ? [{ name: name ?? '(no class named)', code }] : [];
  });
}
