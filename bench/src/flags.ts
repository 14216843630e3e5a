/** A wrong flag; the message says why. */
export class UsageError extends Error {}

export function whole(flag: string, text: string, min: number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < min) {
    throw new UsageError(`${flag} must be a whole number of at least ${min}, got '${text}'`);
  }
  return value;
}

/** Names from a list with commas; all of them by default. */
export function pick(flag: string, text: string | undefined, known: readonly string[]): readonly string[] {
  if (text === undefined) return known;
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new UsageError(`${flag}: no '${unknown.join("', '")}'; there are ${known.join(', ')}`);
  return names;
}
