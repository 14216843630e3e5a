/** Job names by pattern: `*` stands for any run of characters, none included; everything else stands for itself. */

/** The pattern that fits every name. */
export const ANY_NAME = '*';

/** What begins a pattern in a list of names that processes handle, since no job name has a line break; alone: there are patterns. */
export const PATTERN_MARK = '\n';

export function isPattern(name: string): boolean {
  return name.includes('*');
}

/** The pattern with one `*` in place of several in a row, which stand for the same. */
export function normalized(pattern: string): string {
  return pattern.replace(/\*+/g, ANY_NAME);
}

/** Whether the name fits the pattern. Linear in the length of both. */
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

/** Whether this entry of a list of handled names is a pattern that the name fits. */
export function isFitting(entry: string, name: string): boolean {
  return entry.length > 1 && entry.startsWith(PATTERN_MARK) && fits(entry.slice(1), name);
}

/** Whether every name that fits `inner` also fits `outer`. */
export function contains(outer: string, inner: string): boolean {
  // A character that only a `*` of `outer` can stand for takes the place of any run.
  return fits(outer, inner.replaceAll('*', PATTERN_MARK));
}

/** Whether some name fits both. */
export function overlap(a: string, b: string): boolean {
  // `open[j]`: whether the rest of `a` from this character and the rest of `b` from j can be one text.
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

/** Two patterns of which neither can go before the other: some names fit both, and each has names of its own. */
export function isAmbiguous(a: string, b: string): boolean {
  return a !== b && overlap(a, b) && !contains(a, b) && !contains(b, a);
}

/** For a sort: a pattern that another one contains goes before it. It has more characters of its own, or as many and fewer `*`. */
export function byNarrowness(a: string, b: string): number {
  const stars = (pattern: string) => pattern.split('*').length - 1;
  const own = (pattern: string) => pattern.length - stars(pattern);
  return own(b) - own(a) || stars(a) - stars(b);
}
