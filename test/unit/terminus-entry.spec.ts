import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/sources.js';

/** Every file that this file imports, and every package that any of them imports. */
async function reached(entry: string): Promise<{ files: Set<string>; packages: Set<string> }> {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = async (file: string): Promise<void> => {
    if (files.has(file)) return;
    files.add(file);
    const text = await readFile(file, 'utf8');
    for (const [, from] of text.matchAll(/(?<!\.)\brequire\(['"]([^'"]+)['"]\)/g)) {
      if (from!.startsWith('.')) await visit(resolve(dirname(file), from!));
      else packages.add(from!);
    }
  };
  await visit(join(ROOT, entry));
  return { files, packages };
}

it('the root of the package does not import @nestjs/terminus, which need not be installed', async () => {
  const root = await reached('dist/index.js');
  expect(root.files.size).toBeGreaterThan(100);
  expect([...root.packages]).toContain('@nestjs/common');
  expect([...root.packages].filter((name) => name.includes('terminus'))).toEqual([]);
  const entry = await reached('dist/subpaths/terminus.js');
  expect([...entry.packages]).toContain('@nestjs/terminus');
});

it('godwit/terminus exports the same classes as the root', async () => {
  const [root, entry] = await Promise.all([import('godwit'), import('godwit/terminus')]);
  const names = Object.keys(entry).filter((name) => name !== 'default');
  expect(names).toEqual(['QueueHealthIndicator']);
  const injected = Reflect.getMetadata('design:paramtypes', entry.QueueHealthIndicator) as unknown[];
  expect(injected).toContain(root.QueueRuntime);
  expect(injected).toContain(root.QueueInspector);
});

it('the root of the package does not load the dashboard, which needs no further packages', async () => {
  const [root, entry] = await Promise.all([reached('dist/index.js'), reached('dist/subpaths/dashboard.js')]);
  expect([...root.files].filter((file) => file.includes('dashboard'))).toEqual([]);
  expect([...entry.files].some((file) => file.endsWith('dashboard/server.js'))).toBe(true);
  const others = [...entry.packages].filter((name) => !root.packages.has(name) && !name.startsWith('node:'));
  expect(others).toEqual([]);
});
