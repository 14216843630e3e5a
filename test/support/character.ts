import fc from 'fast-check';

/** How many code points are halves of pairs, and so no characters. */
const HALVES = 0x800;
const FIRST_HALF = 0xd800;

/**
 * Any character of Unicode, as `unit` of texts. It draws as `binary` of fast-check does, which first makes a table of all
 * characters: two seconds in every process.
 */
export const character = fc.integer({ min: 0, max: 0x10_ffff - HALVES }).map(
  (n) => String.fromCodePoint(n < FIRST_HALF ? n : n + HALVES),
  (text) => numberOf(text),
);

function numberOf(text: unknown): number {
  const point = typeof text === 'string' ? text.codePointAt(0) : undefined;
  if (point === undefined || text !== String.fromCodePoint(point)) throw new Error('no character');
  if (point < FIRST_HALF) return point;
  if (point < FIRST_HALF + HALVES) throw new Error('half of a pair');
  return point - HALVES;
}
