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

/** Scripts without a descriptor and descriptors without a script: each script has a descriptor in a `.ts` file beside it. */
export function strayScripts(scripts: readonly SourceFile[], code: readonly SourceFile[]): string[] {
  const described = code.flatMap(({ path, text }) =>
    [...text.matchAll(/^export const \w+ = defineScript\(\{\s*name: '([^']+)'/gm)].map(([, name]) =>
      posix.join(posix.dirname(path), `${name}.lua`),
    ),
  );
  const written = scripts
    .map(({ path }) => path)
    .filter((path) => posix.basename(posix.dirname(path)) !== 'shared');
  return [
    ...written.filter((path) => !described.includes(path)).map((path) => `${path} has no descriptor`),
    ...described
      .filter((path) => !written.includes(path))
      .map((path) => `${path} is described and does not exist`),
  ];
}
