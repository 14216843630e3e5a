import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './sources.js';

/** A code block of a page. */
interface PageCode {
  readonly page: string;
  /** Number of its first line of code. */
  readonly line: number;
  readonly code: string;
  /** Path of the file that it shows, from its fence: `ts src/main.ts`. Files of one page may import each other. */
  readonly file?: string;
}

/** Code in a cell of a table whose heading names its type. */
export interface TableCode extends PageCode {
  /** Under ``Code: `JobOptions` `` it is an object of that type; under `Code` a statement, or a member of a class. */
  readonly type: string | null;
}

/** Every hand-written page of the documentation; `docs/api` is generated. */
export function pagesOfDocs(): string[] {
  const inDocs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && !path.startsWith('api/'))
    .map((path) => `docs/${path}`);
  return [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'CHANGELOG.md',
    ...inDocs.toSorted(),
  ];
}

/** Every block of a page with the fence `ts`, with or without the path of a file, or with another word after it. */
export function blocksOf(page: string, word?: string): PageCode[] {
  const fence = new RegExp(
    `^\`\`\`ts(?: (${word ?? '\\S+\\.ts'}))${word ? '' : '?'}\n([\\s\\S]*?)^\`\`\`$`,
    'gm',
  );
  const text = readPage(page);
  return [...text.matchAll(fence)].map(({ index, 1: file, 2: code }) => ({
    page,
    line: text.slice(0, index).split('\n').length + 1,
    code: code!,
    ...(file !== undefined && !word && { file }),
  }));
}

/** The first block under this heading. */
export function blockUnder(page: string, heading: string): PageCode {
  const from = readPage(page)
    .split('\n')
    .findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  const found = from === -1 ? undefined : blocksOf(page).find(({ line }) => line > from);
  if (!found) throw new Error(`${page} has no code under "${heading}"`);
  return found;
}

/** The exports of a block that is run as a module. */
export async function run<Exports>({ code, page, line }: PageCode): Promise<Exports> {
  const place = join(ROOT, '.tmp', `run-${process.pid}`);
  mkdirSync(place, { recursive: true });
  const file = join(place, `${page.replace(/\W/g, '-')}-${line}.ts`);
  writeFileSync(file, code);
  try {
    return (await import(file)) as Exports;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** The texts in backticks of every table column whose heading begins with `Code`. */
export function tableCodeOf(page: string): TableCode[] {
  const found: TableCode[] = [];
  let headings: readonly string[] | null = null;
  for (const [i, text] of readPage(page).split('\n').entries()) {
    const cells = text.startsWith('|') ? cellsOf(text) : null;
    if (cells && headings) {
      for (const [column, heading] of headings.entries()) {
        const [isCode, type = null] = /^Code(?:: `(\w+)`)?$/.exec(heading) ?? [];
        if (isCode === undefined) continue;
        const spans = (cells[column] ?? '').matchAll(/(`+)(.+?)\1/g);
        for (const span of spans) found.push({ page, line: i + 1, type, code: span[2]!.trim() });
      }
    }
    headings = cells && (headings ?? cells);
  }
  return found;
}

/** The code of a cell as a function: it may await, throw, or declare names that are declared elsewhere too. */
export function asFunction({ code, type }: Pick<TableCode, 'code' | 'type'>, name: string): string {
  if (type !== null) return `async function ${name}() { const value: ${type} = ${code}; return value; }`;
  const isMember = /^(@(Handle|HandleBatch|OnJob|OnQueueEvent|Schedule)\b|constructor\b)/.test(code);
  return `async function ${name}() { ${isMember ? `class Example { ${code} }` : `${code};`} }`;
}

/** A file to compile. */
interface Source {
  readonly text: string;
  /** Its path in the folder. By default a path that no other file imports. */
  readonly file?: string;
  /** The line of the page for a line of the file, counted from 0. */
  readonly at: (line: number) => string;
}

export function blockSources(blocks: readonly PageCode[]): Source[] {
  return blocks.map(({ page, line, code, file }) => ({
    text: code,
    at: (at) => `${page}:${line + at}`,
    ...(file !== undefined && { file: join(folderOf(page), file) }),
  }));
}

/** The code of tables, after the declarations that it uses. */
export function tableSource(codes: readonly TableCode[], prelude: string): Source {
  const lead = prelude.split('\n').length;
  const at = (line: number) => {
    const code = codes[line - lead];
    return code ? `${code.page}:${code.line} (${code.code})` : `the prelude:${line + 1}`;
  };
  return {
    text: [prelude, ...codes.map((code, i) => `export ${asFunction(code, `row${i}`)}`)].join('\n'),
    at,
  };
}

/** The messages of the compiler, as `page:line sentence`. The files are written into a temporary folder. */
export function compile(sources: readonly Source[], folder: string): string[] {
  const place = join(ROOT, folder);
  mkdirSync(place, { recursive: true });
  try {
    const files = new Map(sources.map((source, i) => [join(place, source.file ?? `block-${i}.ts`), source]));
    for (const [file, { text }] of files) writeInto(file, text);
    const config = {
      extends: join(ROOT, 'tsconfig.base.json'),
      compilerOptions: { rootDir: ROOT, noEmit: true, lib: ['ES2023', 'DOM'] },
      files: [...files.keys()],
    };
    writeInto(join(place, 'tsconfig.json'), JSON.stringify(config));
    const args = [join(ROOT, 'node_modules/typescript-7/bin/tsc'), '-p', place, '--pretty', 'false'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: place, encoding: 'utf8' });
    // A message may go on in indented lines.
    return stdout.split(/\n(?=\S)/).flatMap((fault) => {
      const [, file, line, text = fault.trim()] =
        /^(.+?)\((\d+),\d+\): error TS\d+: ([^]*?)\s*$/.exec(fault) ?? [];
      if (text === '') return [];
      const source = file === undefined ? undefined : files.get(join(place, file));
      return [`${source ? source.at(Number(line) - 1) : (file ?? 'options')} ${text}`];
    });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** Writes the files that a page shows into a folder, like a reader would. */
export function writeFiles(page: string, folder: string): void {
  for (const { file, code } of blocksOf(page)) if (file !== undefined) writeInto(join(folder, file), code);
}

function writeInto(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function folderOf(page: string): string {
  return page.replace(/\W/g, '-');
}

/** `\|` is a bar inside a cell. */
function cellsOf(row: string): string[] {
  const cells = row.split(/(?<!\\)\|/).map((cell) => cell.replaceAll('\\|', '|').trim());
  return cells.slice(1, -1);
}
