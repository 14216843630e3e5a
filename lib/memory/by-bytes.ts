/**
 * The order of the bytes that texts have in UTF-8, by which ids of equal rank stand everywhere. `<` compares units of UTF-16, which
 * differs where one is of a surrogate pair and the other one lies above them.
 */
export function byBytes(a: string, b: string): number {
  if (a === b) return 0;
  const end = Math.min(a.length, b.length);
  for (let at = 0; at < end; at++) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x !== y) return x >= 0xd800 && y >= 0xd800 ? lifted(x) - lifted(y) : x - y;
  }
  return a.length - b.length;
}

/** Surrogates above everything else in the basic plane. */
function lifted(unit: number): number {
  return unit > 0xdfff ? unit - 0x800 : unit + 0x2000;
}
