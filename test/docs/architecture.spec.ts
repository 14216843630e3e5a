import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LETTERS } from '#lib/job/job-id.js';
import { QUEUE_KEYS, QueueKeys, typeOfKey } from '#lib/engine/keys.js';
import { readPage } from '../support/page-code.js';
import { ROOT } from '../support/sources.js';

const page = readPage('ARCHITECTURE.md');

describe('ARCHITECTURE.md', () => {
  it('names only paths that exist', () => {
    expect(pathsIn(page).length).toBeGreaterThan(30);
    expect(pathsIn(page).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('names only paths that exist in CONTRIBUTING.md too', () => {
    const paths = pathsIn(readPage('CONTRIBUTING.md'));
    expect(paths.length).toBeGreaterThan(30);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('names every folder of lib and lib/subpaths', () => {
    const folders = ['lib', 'lib/subpaths'].flatMap((parent) =>
      readdirSync(join(ROOT, parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${parent}/${name}`),
    );
    expect(folders.filter((folder) => !pathsIn(section('Folders')).includes(folder))).toEqual([]);
  });

  it('would be reported for a path that does not exist', () => {
    expect(pathsIn('see `lib/gone.ts`, `lib/job`, `jobs` and `{<prefix>}:bell`')).toEqual([
      'lib/gone.ts',
      'lib/job',
    ]);
  });

  it('states the number of functions and files on the path of a job, and where they are', () => {
    const [add, rest] = section('The path of a job').split('The next three steps') as [string, string];
    for (const [text, total] of [
      [add, [14, 7]],
      [rest, [24, 10]],
    ] as const) {
      const functions: string[] = [];
      const files = new Set<string>();
      for (const [, where, names] of text.matchAll(/^\|[^|]*\|([^|]*)\|([^|]*)\|$/gm)) {
        const named = [...names!.matchAll(/`(?:\w+\.)?(\w+)`/g)].map(([, name]) => name!);
        if (named.length === 0) continue;
        const paths = pathsIn(where!);
        const code = paths.map((path) => readFileSync(join(ROOT, path), 'utf8')).join('');
        const isDefined = (name: string) =>
          new RegExp(`^\\s*(?:\\w+ )*${name}(?:<.*>)?(?:\\(| = (?:async )?\\(| extends )`, 'm').test(code);
        expect(named.filter((name) => !isDefined(name))).toEqual([]);
        functions.push(...named);
        for (const path of paths) files.add(path);
      }
      expect([functions.length, files.size]).toEqual(total);
      expect(text).toContain(`${total[0]} functions in ${total[1]} files`);
    }
  });

  it('has every script in its catalogue, once', () => {
    const scripts = readdirSync(join(ROOT, 'lib/engine/scripts'))
      .filter((file) => file.endsWith('.lua'))
      .map((file) => file.slice(0, -'.lua'.length));
    expect(firstCells('Scripts').toSorted(), 'the table of scripts in ARCHITECTURE.md').toEqual(
      scripts.toSorted(),
    );
  });

  it('has every key of a queue in its table, once, with its type', () => {
    const keys = new QueueKeys('p', 'q');
    const tag = keys.fixed.jobs.slice(0, -'jobs'.length);
    const fixed = Object.values(keys.fixed).map((key) => key.slice(tag.length));
    const types = [...section('Keys').matchAll(/^\| `(\w+)` \| ([A-Z]+)/gm)];
    const wrong = types.filter(([, key, type]) => {
      const name = QUEUE_KEYS.find((one) => keys.fixed[one] === tag + key);
      return name !== undefined && typeOfKey(name) !== type!.toLowerCase();
    });
    expect(types.length).toBeGreaterThan(25);
    expect(wrong.map(([row]) => row)).toEqual([]);
    const lettered = new Set(LETTERS.map((letter) => `jobs:${letter}`));
    const made = [
      keys.active('<worker>'),
      keys.worker('<worker>'),
      keys.lane('<lane>'),
      keys.stats('<day>'),
      ...(['name', 'host'] as const).map((by) => keys.minutes(0, by).replace('1970-01-01T00', '<hour>')),
      keys.janitor('<group>'),
      keys.undo,
    ].map((key) => key.slice(tag.length));
    expect(firstCells('Keys').toSorted(), 'the table of keys in ARCHITECTURE.md').toEqual(
      [...fixed.filter((key) => !lettered.has(key)), 'jobs:<letter>', ...made].toSorted(),
    );
  });
});

/** All texts between backticks that begin with a folder of the repository. */
function pathsIn(text: string): string[] {
  return [...text.matchAll(/`((?:lib|test|bench|sample|tools|docs)(?:\/[\w.-]+)*)`/g)].map(
    ([, path]) => path!,
  );
}

/** The text under a heading, up to the next one. */
function section(heading: string): string {
  const [, text] = page.split(`\n## ${heading}\n`);
  return text!.split(/\n## /)[0]!;
}

/** The texts between backticks in the first column of the tables of a section. */
function firstCells(heading: string): string[] {
  return section(heading)
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .flatMap((line) => [...line.split(' | ')[0]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));
}
