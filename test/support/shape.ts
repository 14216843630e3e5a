import { posix } from 'node:path';
import ts from 'typescript';
import { parse, type SourceFile } from './sources.js';

/** Files with too many lines. */
export function longFiles(files: readonly SourceFile[], max: number): string[] {
  return files
    .map(({ path, text }) => ({ path, lines: text.trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > max)
    .map(({ path, lines }) => `${path} has ${lines} lines, more than ${max}`);
}

/** Functions and methods with too many lines. */
export function longFunctions(files: readonly SourceFile[], max: number): string[] {
  return files.flatMap((file) => {
    const found: string[] = [];
    const source = parse(file);
    const visit = (node: ts.Node): void => {
      if (ts.isFunctionLike(node)) {
        const first = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
        const lines = source.getLineAndCharacterOfPosition(node.end).line + 2 - first;
        if (lines > max)
          found.push(`${file.path}:${first} is a function of ${lines} lines, more than ${max}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    return found;
  });
}

/** Places where a script uses a key or an argument by number instead of by its generated name. */
export function numberedSlots(scripts: readonly SourceFile[]): string[] {
  return scripts.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, i) => {
      const slot = /\b(?:KEYS|ARGV)\s*\[\s*\d+\s*\]/.exec(line.replace(/--.*$/, ''));
      return slot ? [`${path}:${i + 1} says ${slot[0]}`] : [];
    }),
  );
}

/** Scripts without a descriptor and descriptors without a script: each script has a `.ts` file of the same name. */
export function strayScripts(scripts: readonly SourceFile[], code: readonly SourceFile[]): string[] {
  const byPath = new Map(code.map((file) => [file.path, file.text]));
  const descriptors = code.filter(({ text }) => /^export const \w+ = defineScript\(/m.test(text));
  const alone = scripts.filter(({ path }) => {
    const name = posix.basename(path, '.lua');
    if (posix.basename(posix.dirname(path)) === 'shared') return false;
    return !byPath.get(path.replace(/\.lua$/, '.ts'))?.includes(`name: '${name}'`);
  });
  const empty = descriptors.filter(
    ({ path }) => !scripts.some((script) => script.path === path.replace(/\.ts$/, '.lua')),
  );
  return [
    ...alone.map(({ path }) => `${path} is described by no .ts beside it`),
    ...empty.map(({ path }) => `${path} describes a script that is not beside it`),
  ];
}
