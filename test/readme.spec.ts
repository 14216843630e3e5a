import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, describe, expect, it } from 'vitest';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const FOLDER = join(ROOT, '.tmp', 'readme');

interface Block {
  readonly page: string;
  readonly line: number;
  readonly code: string;
}

/** Every TypeScript block of a page, with the line it begins on. */
function blocksOf(page: string): Block[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((found) => ({
    page,
    line: text.slice(0, found.index).split('\n').length + 1,
    code: found[1]!,
  }));
}

function compile(blocks: readonly Block[]): string[] {
  mkdirSync(FOLDER, { recursive: true });
  const files = new Map(blocks.map((block, i) => [join(FOLDER, `block-${i}.ts`), block]));
  for (const [file, { code }] of files) writeFileSync(file, code);
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (path) => readFileSync(path, 'utf8'));
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const program = ts.createProgram([...files.keys()], {
    ...options,
    rootDir: ROOT,
    noEmit: true,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts'],
  });
  return ts.getPreEmitDiagnostics(program).map((fault) => {
    const block = fault.file && files.get(fault.file.fileName);
    const at = block && ts.getLineAndCharacterOfPosition(fault.file!, fault.start ?? 0).line;
    const place = block ? `${block.page}:${block.line + (at ?? 0)}` : (fault.file?.fileName ?? 'options');
    return `${place} ${ts.flattenDiagnosticMessageText(fault.messageText, '\n')}`;
  });
}

afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

describe('the README', () => {
  it('has only code that compiles', { timeout: 60_000 }, () => {
    const blocks = blocksOf('README.md');
    expect(blocks.length).toBeGreaterThanOrEqual(4);
    expect(compile(blocks)).toEqual([]);
  });

  it('would be caught with code that does not', { timeout: 60_000 }, () => {
    const broken = {
      page: 'X.md',
      line: 10,
      code: `import { Queue } from 'godwit';\nexport const n: number = 'no';\n`,
    };
    expect(compile([broken]).some((fault) => fault.startsWith('X.md:11'))).toBe(true);
  });
});
