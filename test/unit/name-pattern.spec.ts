import { describe, expect, it } from 'vitest';
import { byNarrowness, contains, fits, isAmbiguous, normalized, overlap } from '#lib/job/name-pattern.js';

const LETTERS = ['a', 'b'];

/** All texts of these characters up to a length. */
function texts(characters: readonly string[], length: number): string[] {
  const all = [''];
  for (let from = 0, n = 0; n < length; n++) {
    const end = all.length;
    for (; from < end; from++) for (const one of characters) all.push(all[from]! + one);
  }
  return all;
}

const NAMES = texts([...LETTERS, 'c'], 6);
const PATTERNS = [
  ...new Set(
    texts([...LETTERS, '*'], 3)
      .filter((text) => text.includes('*'))
      .map(normalized),
  ),
];
const namesOf = new Map(PATTERNS.map((pattern) => [pattern, new Set(NAMES.filter((n) => fits(pattern, n)))]));

describe('a pattern', () => {
  it('matches the same names as a regular expression with .* instead of *', () => {
    for (const pattern of PATTERNS) {
      const regex = new RegExp(`^${pattern.replaceAll('*', '.*')}$`);
      expect(NAMES.filter((name) => fits(pattern, name))).toEqual(NAMES.filter((name) => regex.test(name)));
    }
  });

  it.each([
    ['email.*', 'email.', true],
    ['email.*', 'email', false],
    ['*.failed', 'order.failed', true],
    ['a*a', 'a', false],
    ['*ab*ab*', 'xaby', false],
    ['a.c*', 'abcd', false],
    ['plain', 'plain', true],
  ])('%s and the name %s: %s', (pattern, name, is) => expect(fits(pattern, name)).toBe(is));

  it('is as fast with many stars', () => {
    expect(fits(`${'*a'.repeat(120)}*b`, 'a'.repeat(250))).toBe(false);
  });
});

it('two patterns overlap, contain each other and are sorted like their sets of names', () => {
  for (const [a, as] of namesOf) {
    for (const [b, bs] of namesOf) {
      const common = [...as].filter((name) => bs.has(name)).length;
      const isInside = common === bs.size;
      expect([a, b, overlap(a, b)]).toEqual([a, b, common > 0]);
      expect([a, b, contains(a, b)]).toEqual([a, b, isInside]);
      expect([a, b, isAmbiguous(a, b)]).toEqual([a, b, common > 0 && !isInside && common < as.size]);
      const goesFirst = !isInside || common === as.size || byNarrowness(b, a) < 0;
      expect([a, b, goesFirst]).toEqual([a, b, true]);
    }
  }
});
