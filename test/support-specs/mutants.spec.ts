import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import '#lib/engine/redis-engine.js';
import { allScripts } from '#lib/engine/script.js';
import { allMutants } from '../mutation/mutants.js';

it('every mutant is a mistake in some script', () => {
  const inNone = allMutants().filter(({ patch }) =>
    allScripts().every(({ name, text }) => patch(name, text) === text),
  );
  expect(inNone.map(({ id }) => id)).toEqual([]);
});

it('every reason why a mutant survives is for a mutant that there is', () => {
  const reasons = JSON.parse(
    readFileSync(new URL('../mutation/survivors.json', import.meta.url), 'utf8'),
  ) as object;
  const keys = new Set(allMutants().map(({ key }) => key));
  expect(Object.keys(reasons).filter((key) => !keys.has(key))).toEqual([]);
});
