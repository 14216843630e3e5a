import luaparse from 'luaparse';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import '#lib/engine/redis-engine.js';
import { allScripts } from '#lib/engine/script.js';
import { allMutants } from '../mutation/mutants.js';

it('every mutant changes a script', () => {
  const inNone = allMutants().filter(({ patch }) =>
    allScripts().every(({ name, text }) => patch(name, text) === text),
  );
  expect(inNone.map(({ id }) => id)).toEqual([]);
});

it('a mutant of an operator is a script with one operator replaced', () => {
  const [first] = allMutants().filter(
    ({ id, kind }) => id.startsWith('shared/rates:') && kind === 'operator',
  );
  const changes = allScripts().flatMap(({ name, text }) => {
    const lines = text.split('\n');
    const mutated = first!.patch(name, text).split('\n');
    return lines.flatMap((line) => (mutated.includes(line) ? [] : [line]));
  });
  expect(new Set(changes).size).toBe(1);
  const text = allScripts().find(({ name }) => name === 'claim-limited')!.text;
  expect(() => luaparse.parse(first!.patch('claim-limited', text), { luaVersion: '5.1' })).not.toThrow();
});

it('every reason for a survivor names an existing mutant', () => {
  const reasons = JSON.parse(
    readFileSync(new URL('../mutation/survivors.json', import.meta.url), 'utf8'),
  ) as object;
  const keys = new Set(allMutants().map(({ key }) => key));
  expect(Object.keys(reasons).filter((key) => !keys.has(key))).toEqual([]);
});
