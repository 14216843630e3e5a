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
