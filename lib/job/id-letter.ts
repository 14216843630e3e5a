/** The possible last characters of a generated id. */
export const LETTERS = [
  'A',
  'B',
  'C',
  'D',
  'E',
  'F',
  'G',
  'H',
  'I',
  'J',
  'K',
  'L',
  'M',
  'N',
  'O',
  'P',
  'Q',
  'R',
  'S',
  'T',
  'U',
  'V',
  'W',
  'X',
  'Y',
  'Z',
] as const;

export type Letter = (typeof LETTERS)[number];

/** Length of a generated id in bytes. */
const LENGTH = 19;
const FIRST = LETTERS[0].charCodeAt(0);

/**
 * Which of the hashes of a queue keeps the body of a job follows from its id: one that is as long as a made id and ends as one has
 * this letter, all others have none. The scripts read ids the same way (`hash_of`), so that nothing about it needs to be stored.
 */
export function letterOf(id: string): Letter | '' {
  const code = id.charCodeAt(id.length - 1);
  if (code < FIRST || code >= FIRST + LETTERS.length || id.length > LENGTH) return '';
  return Buffer.byteLength(id) === LENGTH ? LETTERS[code - FIRST]! : '';
}
