import { expect, it } from 'vitest';
import { ADVICE } from '#lib/errors/for-operators.js';
import { sourcesIn } from '../support/sources.js';

const texts = sourcesIn('lib', ['.ts'])
  .filter(({ path }) => path !== 'lib/errors/for-operators.ts')
  .map(({ text }) => text);

// Otherwise a changed message would show operators the words for developers again.
it.each(ADVICE.map(([inCode]) => inCode))('an error still ends with “%s”', (advice) => {
  expect(texts.some((text) => text.includes(advice))).toBe(true);
});
