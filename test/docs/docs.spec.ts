import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../support/sources.js';
import {
  described,
  document,
  publicNames,
  ReflectionKind,
  summary,
  tagged,
  thrownBy,
  type Described,
  type Documentation,
} from './documentation.js';
import { compileExamples } from './examples.js';

const OUT = join(ROOT, '.tmp', 'docs-spec');
let docs: Documentation;

beforeAll(async () => {
  docs = await document(OUT);
}, 300_000);
afterAll(() => rmSync(OUT, { recursive: true, force: true }));

const all = (kinds: ReflectionKind) => described(docs.project, kinds);
const methods = () => all(ReflectionKind.Method);
const functions = () => all(ReflectionKind.Function);
const publics = () => {
  const { name } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { name: string };
  return publicNames(docs.project, name);
};

describe('the documentation', () => {
  it('is built without a warning: everything public is described, and every link has a target', () => {
    expect(docs.complaints).toEqual([]);
    expect(readFileSync(join(OUT, 'index.html'), 'utf8')).toContain('Godwit');
    expect(all(ReflectionKind.Class).length).toBeGreaterThan(30);
  });

  it('has an example for every class and every function, decorators included', () => {
    const bare = [...all(ReflectionKind.Class), ...functions()].filter(
      (one) => tagged(one, '@example').length === 0,
    );
    expect(bare.map(({ name }) => name)).toEqual([]);
  });

  it('has only examples that compile', { timeout: 300_000 }, () => {
    const examples = all(ReflectionKind.All).flatMap((one) =>
      tagged(one, '@example').map((text) => ({ of: one.name, text })),
    );
    expect(examples.length).toBeGreaterThan(60);
    // Examples that do not compile are reported. Otherwise this test would prove nothing.
    const broken = [
      { of: 'A', text: `await queue.add('welcome', data);\nqueue.ad('welcome');` },
      { of: 'B', text: `@Handle('a')\nasync run(job: Job) { return job.nothing; }` },
    ];
    expect(compileExamples([...examples, ...broken], publics(), '.tmp/docs-examples')).toEqual([
      expect.stringMatching(/^A, `queue\.ad\('welcome'\);`: Property 'ad' does not exist/),
      expect.stringMatching(/^B, .*: Property 'nothing' does not exist/),
    ]);
  });
});

describe('what is thrown', () => {
  it('is documented for everything that talks to Redis', () => {
    const silent = methods().filter((one) => {
      const promises = (one.reflection.signatures ?? []).some((signature) =>
        signature.type?.toString().startsWith('Promise<'),
      );
      return promises && !throwsSaid(one) && !/Never rejects/i.test(summary(one));
    });
    expect(silent.map(({ name }) => name)).toEqual([]);
  });

  it('is documented at each function that throws it, by name', () => {
    const silent = [...methods(), ...functions()].flatMap((one) =>
      thrownBy(docs.project, one.reflection)
        .filter((error) => !tagged(one, '@throws').some((text) => text.includes(error)))
        .map((error) => `${one.name} throws ${error}`),
    );
    expect(silent).toEqual([]);
  });

  it('is an error that exists', () => {
    const names = publics();
    const unknown = [...methods(), ...functions(), ...all(ReflectionKind.Constructor)].flatMap((one) =>
      tagged(one, '@throws')
        .flatMap((text) => text.match(/\b[A-Z]\w+Error\b/g) ?? [])
        .filter((error) => !names.has(error))
        .map((error) => `${one.name} names ${error}`),
    );
    expect(unknown).toEqual([]);
  });
});

describe('an option', () => {
  const optional = () =>
    all(ReflectionKind.Property).filter(
      ({ reflection }) =>
        reflection.flags.isOptional && /(Options|Defaults|Option)$/.test(reflection.parent!.name),
    );

  it('states its default', () => {
    expect(optional().length).toBeGreaterThan(30);
    const silent = optional().filter((one) => tagged(one, '@default').length === 0);
    expect(silent.map(({ name }) => name)).toEqual([]);
  });

  it('that is a number states its unit or its bounds', () => {
    const silent = optional().filter(
      (one) =>
        one.reflection.type?.toString() === 'number' &&
        !/\d/.test(summary(one)) &&
        !/\b(bytes|jobs|tasks|ms)\b/.test(summary(one)),
    );
    expect(silent.map(({ name }) => name)).toEqual([]);
  });
});

function throwsSaid(one: Described): boolean {
  return tagged(one, '@throws').length > 0;
}
