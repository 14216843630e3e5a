import { describe, expect, it } from 'vitest';
import { forbiddenImports, importCycles } from './support/rooms.js';
import { longFiles, longFunctions, numberedSlots, strayScripts } from './support/shape.js';
import { sourcesIn, type SourceFile } from './support/sources.js';

const MAX_FILE_LINES = 600;
const MAX_FUNCTION_LINES = 70;

const file = (path: string, text: string): SourceFile => ({ path, text });
const faultOf = (path: string, text: string) => forbiddenImports([file(path, text)]);
const lib = sourcesIn('lib', ['.ts']);
const scripts = sourcesIn('lib', ['.lua']);
const written = ['lib', 'dashboard', 'test', 'bench', 'sample', 'tools'].flatMap((folder) =>
  sourcesIn(folder, ['.ts', '.tsx', '.mts', '.js', '.mjs', '.lua', '.sh', '.css', '.html']),
);

describe('the layout of the project', () => {
  it('is read by these tests', () => {
    expect(lib.map(({ path }) => path)).toContain('lib/errors.ts');
    expect(written.length).toBeGreaterThan(lib.length);
  });

  it('lets each room import only what the table says', () => {
    expect(forbiddenImports(lib)).toEqual([]);
  });

  it('has no import cycle', () => {
    expect(importCycles(lib)).toEqual([]);
  });

  it('has one barrel', () => {
    expect(lib.map(({ path }) => path).filter((path) => /(^|\/)index\.ts$/.test(path))).toEqual(
      lib.some(({ path }) => path === 'lib/index.ts') ? ['lib/index.ts'] : [],
    );
  });

  it('has no file and no function that is too long', () => {
    expect(longFiles(written, MAX_FILE_LINES)).toEqual([]);
    const code = written.filter(({ path }) => /^(lib|tools)\/.*\.m?[jt]s$/.test(path));
    expect(longFunctions(code, MAX_FUNCTION_LINES)).toEqual([]);
  });

  it('names the slots of a script once, in its descriptor', () => {
    expect(numberedSlots(scripts)).toEqual([]);
    expect(strayScripts(scripts, lib)).toEqual([]);
  });
});

describe('the rules of the layout', () => {
  it.each([
    ['lib/errors.ts', "import { x } from 'ioredis';", 'errors may import nothing'],
    ['lib/job/a.ts', "import { x } from '../options/b.js';", 'job may import errors of lib'],
    ['lib/options/a.ts', "import { Redis } from 'ioredis';", 'imports ioredis (Redis)'],
    ['lib/engine/a.ts', "import { Subject } from 'rxjs';", 'imports rxjs (Subject)'],
    ['lib/producer/a.ts', "import { x } from '../worker/b.js';", 'producer may import errors'],
    ['lib/worker/a.ts', "import { x } from '../engine/redis-engine.js';", 'worker may import errors'],
    ['lib/worker/a.ts', "import { Logger, Module } from '@nestjs/common';", '(Logger, Module)'],
    ['lib/worker/a.ts', "import * as nest from '@nestjs/common';", '(*)'],
    ['lib/worker/a.ts', "export * from '../events/b.js';", 'worker may import errors'],
    ['lib/worker/a.ts', "const x = await import('../events/b.js');", 'worker may import errors'],
    ['lib/worker/a.ts', "let x: import('../events/b.js').X;", 'worker may import errors'],
    [
      'lib/handlers/discovery/a.ts',
      "import { x } from '../../decorators/handle.decorator.js';",
      'handlers may import errors',
    ],
    [
      'lib/handlers/discovery/a.ts',
      "import { x } from '@nestjs/core/internal';",
      'which Nest 11 does not have',
    ],
    ['lib/handlers/discovery/a.ts', "import { x } from '@nestjs/core/injector/injector';", 'without .js'],
    ['lib/module/queue.module.ts', "import { x } from '../index.js';", 'imports the barrel'],
    ['lib/module/queue.module.ts', "import { x } from './errors';", 'relative imports end in .js'],
    ['lib/module/queue.module.ts', "import { x } from '#lib/errors.js';", 'by relative path'],
    ['lib/kitchen/a.ts', '', 'is in no room'],
  ])('%s may not hold %s', (path, text, said) => {
    expect(faultOf(path, text)).toEqual([expect.stringContaining(said)]);
  });

  it.each([
    ['lib/job/a.ts', "import type { StandardSchemaV1 } from '@standard-schema/spec';"],
    ['lib/options/a.ts', "import { type Redis, type Cluster } from 'ioredis';"],
    [
      'lib/engine/a.ts',
      "import { Redis } from 'ioredis'; import { x } from '../job/b.js'; import { y } from './keys.js';",
    ],
    [
      'lib/worker/a.ts',
      "import { Log } from '../contract/log.js'; import type { E } from '../contract/engine.js';",
    ],
    ['lib/events/a.ts', "import { Subject } from 'rxjs'; import { once } from 'node:events';"],
    [
      'lib/handlers/discovery/a.ts',
      "import { Injector } from '@nestjs/core/injector/injector.js'; import { x } from '../decorators/metadata.js';",
    ],
    [
      'lib/module/queue.runtime.ts',
      "import { x } from '../engine/redis-engine.js'; import { y } from '../worker/drain.js';",
    ],
    ['lib/index.ts', "export { QueueModule } from './module/queue.module.js';"],
  ])('%s may hold %s', (path, text) => {
    expect(faultOf(path, text)).toEqual([]);
  });

  it('finds import cycles', () => {
    const a = file('lib/job/a.ts', "import { b } from './b.js';");
    const b = file('lib/job/b.ts', "import type { c } from './deep/c.js';");
    const c = file('lib/job/deep/c.ts', "import { a } from '../a.js';");
    expect(importCycles([a, b])).toEqual([]);
    expect(importCycles([b, c, a])).toEqual([
      'lib/job/b.ts -> lib/job/deep/c.ts -> lib/job/a.ts -> lib/job/b.ts',
    ]);
  });

  it('finds files and functions that are too long', () => {
    expect(longFiles([file('a', 'x\n'.repeat(3)), file('b', 'x\n'.repeat(4))], 3)).toEqual([
      'b has 4 lines, more than 3',
    ]);
    const method = file('c.ts', 'class C {\n  m() {\n    return 1;\n  }\n}\n');
    expect(longFunctions([method], 3)).toEqual([]);
    expect(longFunctions([method], 2)).toEqual(['c.ts:2 is a function of 3 lines, more than 2']);
  });

  it('finds numbered slots', () => {
    const script = file(
      'a.lua',
      'local x = KEYS[i]\nlocal y = ARGV[ 2 ]\n-- KEYS[1] in words\nreturn KEYS[12]',
    );
    expect(numberedSlots([script])).toEqual(['a.lua:2 says ARGV[ 2 ]', 'a.lua:4 says KEYS[12]']);
  });

  it('finds scripts without a descriptor and descriptors without a script', () => {
    const descriptors =
      "export const a = defineScript({\n  name: 'a',\n});\nexport const c = defineScript({ name: 'c' });";
    const found = strayScripts(
      ['s/a.lua', 's/b.lua', 's/shared/used.lua'].map((path) => file(path, '')),
      [file('s/work.ts', descriptors)],
    );
    expect(found.map((text) => text.split(' ')[0])).toEqual(['s/b.lua', 's/c.lua']);
  });
});
