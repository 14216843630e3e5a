/** Patterns of job names: `*` matches any number of characters, including none; every other character matches itself. */

/** The pattern that matches every name. */
export const ANY_NAME = '*';

/**
 * Prefix of a pattern in a list of the names that processes handle. No job name has a line break. Alone it means that the list
 * has patterns.
 */
export const PATTERN_MARK = '\n';

export function isPattern(name: string): boolean {
  return name.includes('*');
}

/** The pattern with each run of `*` replaced by one `*`, which matches the same names. */
export function normalized(pattern: string): string {
  return pattern.replace(/\*+/g, ANY_NAME);
}

/** Whether the name matches the pattern. Takes time linear in the length of both. */
export function fits(pattern: string, name: string): boolean {
  const parts = pattern.split('*');
  const first = parts[0]!;
  if (parts.length === 1) return name === pattern;
  const last = parts.at(-1)!;
  const end = name.length - last.length;
  if (end < first.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** Whether this entry of a list of handled names is a pattern that matches the name. */
export function isFitting(entry: string, name: string): boolean {
  return entry.length > 1 && entry.startsWith(PATTERN_MARK) && fits(entry.slice(1), name);
}

/** Whether every name that matches `inner` also matches `outer`. */
export function contains(outer: string, inner: string): boolean {
  // A `*` of `inner` is replaced by a character that only a `*` of `outer` can match.
  return fits(outer, inner.replaceAll('*', PATTERN_MARK));
}

/** Whether some name matches both patterns. */
export function overlap(a: string, b: string): boolean {
  // `open[j]`: whether some text matches both the rest of `a` from this character and the rest of `b` from j.
  let open: boolean[] = [];
  for (let i = a.length; i >= 0; i--) {
    const row: boolean[] = [];
    for (let j = b.length; j >= 0; j--) {
      const [left, right] = [a[i], b[j]];
      if (left === undefined && right === undefined) row[j] = true;
      else if (left === '*') row[j] = open[j]! || (right !== undefined && row[j + 1]!);
      else if (right === '*') row[j] = row[j + 1]! || (left !== undefined && open[j]!);
      else row[j] = left === right && open[j + 1]!;
    }
    open = row;
  }
  return open[0]!;
}

/** Whether the order of two patterns is ambiguous: some names match both, and each also matches names that the other does not. */
export function isAmbiguous(a: string, b: string): boolean {
  return a !== b && overlap(a, b) && !contains(a, b) && !contains(b, a);
}

/**
 * Sorts narrower patterns first: if every name of `a` also matches `b`, then `a` comes first. The narrower one has more
 * characters other than `*`, or the same number and fewer `*`.
 */
export function byNarrowness(a: string, b: string): number {
  const stars = (pattern: string) => pattern.split('*').length - 1;
  const own = (pattern: string) => pattern.length - stars(pattern);
  return own(b) - own(a) || stars(a) - stars(b);
}
