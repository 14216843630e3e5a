import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { ROOT } from '../support/sources.js';

// An editor takes `@Handle` after white space in a docstring for a tag, also within an example and a code fence. The
// example would end there. After a semicolon it is code, and so is an empty statement or an empty member of a class.

/** Words that an editor would show as tags and that are none, such as `Handle`. */
function decoratorsAsTags(file: string, text: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node) => {
    for (const tag of ts.getJSDocTags(node))
      if (/^[A-Z]/.test(tag.tagName.text)) found.push(`${file}: @${tag.tagName.text}`);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true));
  return [...new Set(found)];
}

const BROKEN = `/**
 * Does it.
 *
 * @example
 * class A {
 *   @Handle('a')
 *   run() {}
 * }
 */
export function work() {}`;

it('editors show an example with decorators completely', () => {
  const files = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  expect(files.length).toBeGreaterThan(200);
  const found = files.flatMap((file) =>
    decoratorsAsTags(file, readFileSync(join(ROOT, 'lib', file), 'utf8')),
  );
  expect(found).toEqual([]);
});

it('a truncated example would be found, and the form in use is not truncated', () => {
  expect(decoratorsAsTags('broken.ts', BROKEN)).toEqual(['broken.ts: @Handle']);
  const whole = BROKEN.replace('@Handle', ';@Handle');
  expect(decoratorsAsTags('whole.ts', whole)).toEqual([]);
  const [example] = ts.getJSDocTags(
    ts.createSourceFile('whole.ts', whole, ts.ScriptTarget.ES2022, true).statements[0]!,
  );
  expect(ts.getTextOfJSDocComment(example!.comment)).toContain("  ;@Handle('a')\n  run() {}\n}");
});
