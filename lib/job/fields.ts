import { InvalidOptionError } from '../errors.js';
import { pathStep } from './text.js';

/**
 * The fields of an object of options: its own, enumerable or not, and the getters and methods of its class and base classes. Unknown
 * fields are included if they may be misspelt options; methods of a class that have nothing to do with options are not.
 *
 * @throws whatever a getter throws.
 */
export function fieldsOf(value: object, known: readonly string[]): [name: string, value: unknown][] {
  const names = Object.keys(value);
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (!isRoot(prototype) || Object.getOwnPropertyNames(value).length > names.length) {
    const seen = new Set(names);
    for (let level = value; !isRoot(level); level = Object.getPrototypeOf(level) as object) {
      for (const [name, field] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
        if (name === 'constructor' || seen.has(name)) continue;
        seen.add(name);
        if (field.enumerable || field.get || field.set || known.includes(name)) names.push(name);
      }
    }
  }
  return names.map((name) => [name, (value as Record<string, unknown>)[name]]);
}

/** Whether it is the prototype of all objects, of this realm or of another one. */
function isRoot(level: object | null): boolean {
  return level === null || level === Object.prototype || Object.hasOwn(level, 'isPrototypeOf');
}

/** Whether it is an object with fields, and not a list, a date, a promise or the like, whose fields are no options. */
export function hasFields(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  return Object.getPrototypeOf(value) === Object.prototype || !BUILT_IN.has(kindOf(value));
}

const kindOf = (value: object): string => Object.prototype.toString.call(value);
const BUILT_IN = new Set(
  ['Array', 'Date', 'Error', 'Map', 'Promise', 'RegExp', 'Set', 'String', 'Number', 'Boolean'].map(
    (name) => `[object ${name}]`,
  ),
);

/** The error for an unknown option. Its message does not show the value, which may be a secret. */
export function unknownField(
  path: string,
  field: string,
  known: readonly string[],
  otherwise = `the options are ${known.join(', ')}`,
): InvalidOptionError {
  const near = nearest(field, known);
  const advice = near === undefined ? otherwise : `did you mean ${near}?`;
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

/** Levenshtein distance: how many letters to add, drop or change. */
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
