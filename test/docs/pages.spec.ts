import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { blocksOf, blockSources, compile, pagesOfDocs, readPage, writeFiles } from '../support/page-code.js';
import { ROOT, sourcesIn } from '../support/sources.js';

const pages = pagesOfDocs();
const withLinks = () => [
  ...pages,
  ...['sample', 'bench', 'test']
    .flatMap((folder) => sourcesIn(folder, ['README.md']))
    .map(({ path }) => path),
];

describe('the code on the pages', () => {
  it('compiles', { timeout: 120_000 }, () => {
    const blocks = pages.flatMap((page) => blocksOf(page));
    expect(blocks.length).toBeGreaterThan(40);
    // A block that does not compile is reported with its line. Otherwise this test would prove nothing.
    const broken = {
      page: 'X.md',
      line: 10,
      code: `import { Queue } from 'godwit';\nexport const n: number = 'no';\n`,
    };
    const faults = compile(blockSources([...blocks, broken]), '.tmp/pages');
    expect(faults).toEqual([expect.stringMatching(/^X\.md:11 /)]);
  });

  it('is valid if it is JSON', () => {
    const blocks = pages.flatMap((page) =>
      [...readPage(page).matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(([, text]) => text!),
    );
    expect(blocks.length).toBeGreaterThan(1);
    for (const text of blocks) expect(() => JSON.parse(text)).not.toThrow();
  });

  it('of the tutorial passes its own test', { timeout: 60_000 }, async () => {
    const page = 'docs/tutorial.md';
    const { file, code } = blocksOf(page).find((block) => block.file?.endsWith('.spec.ts'))!;
    const folder = join(ROOT, '.tmp', `tutorial-${process.pid}`);
    writeFiles(page, folder);
    // A test cannot be declared while another one runs, so `it` of the block only passes on its function.
    const handingOver = code.replace(
      "import { expect, it } from 'vitest';",
      "import { expect } from 'vitest';\nlet test: any;\nconst it = (_: string, run: any) => (test = run);\nexport const get = () => test;",
    );
    writeFileSync(join(folder, file!), handingOver);
    try {
      const { get } = (await import(join(folder, file!))) as { get: () => () => Promise<void> };
      await get()();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    expect.hasAssertions();
  });
});

describe('the links on the pages', () => {
  it('lead to files and headings that exist', () => {
    const broken = withLinks().flatMap((page) => brokenLinks(page, readPage(page)));
    expect(broken).toEqual([]);
  });

  it('would be reported if they did not', () => {
    const text =
      '[a](nowhere.md) [b](README.md#no-such-heading) [c](README.md#quick-start) <img src="no.png"> `[d](code.md)`';
    expect(brokenLinks('X.md', text)).toEqual([
      'X.md: nowhere.md',
      'X.md: README.md#no-such-heading',
      'X.md: no.png',
    ]);
  });

  it('reach every page of docs/ from its index', () => {
    const index = readPage('docs/README.md');
    const missing = pages
      .filter((page) => page.startsWith('docs/') && page !== 'docs/README.md')
      .filter((page) => !index.includes(`](${page.slice('docs/'.length)})`));
    expect(missing).toEqual([]);
  });
});

it('the commands on the pages exist', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const named = withLinks().flatMap((page) =>
    [...readPage(page).matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g)].map(([, name]) => ({
      page,
      name: name!,
    })),
  );
  // The tutorial runs in a project of its own.
  const missing = named.filter(({ page, name }) => !(name in scripts) && page !== 'docs/tutorial.md');
  expect(missing).toEqual([]);
});

it('the README is at most two screens of prose and code', () => {
  expect(readPage('README.md').split('\n').length).toBeLessThanOrEqual(130);
});

/** Relative targets of a page, in Markdown and in HTML, that do not exist. */
function brokenLinks(page: string, text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '');
  const targets = [
    ...[...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!),
    ...[...prose.matchAll(/\b(?:src|srcset|href)="([^"]+)"/g)].map(([, target]) => target!),
  ].filter((target) => !/^[a-z]+:/.test(target));
  return targets.filter((target) => !isThere(page, target)).map((target) => `${page}: ${target}`);
}

function isThere(page: string, target: string): boolean {
  const [path, anchor] = target.split('#') as [string, string?];
  const file = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(join(ROOT, file))) return false;
  if (anchor === undefined) return true;
  return statSync(join(ROOT, file)).isFile() && anchorsOf(file).has(anchor);
}

/** The anchors that GitHub makes of the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const prose = readFileSync(join(ROOT, page), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!);
  return new Set(headings.map(slug));
}

function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
    .replaceAll(' ', '-');
}
