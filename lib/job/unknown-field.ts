import { InvalidOptionError } from '../errors.js';
import { pathStep } from './path.js';

/** The error for a field that is no option; its value stays out of the text, since nobody knows what it is. */
export function unknownField(path: string, field: string, known: readonly string[]): InvalidOptionError {
  const near = nearest(field, known);
  const advice = near === undefined ? `the options are ${known.join(', ')}` : `did you mean ${near}?`;
  const place = path + pathStep(field);
  return new InvalidOptionError(place, 'left out', undefined, `${place} is not an option; ${advice}`);
}

/** The known word that a typing slip could have turned into this one. */
function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.ceil(word.length / 3) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.slice(0, 60).toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein: how many letters to add, drop or change. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, n) => n);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next[j] = Math.min(change, row[j]! + 1, next[j - 1]! + 1);
    }
    row = next;
  }
  return row[to.length]!;
}
