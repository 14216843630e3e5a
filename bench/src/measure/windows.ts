interface Windows {
  /** Most starts in any window. */
  readonly largest: number;
  /** Fewest starts in any window that lies between `from` and `to`. */
  readonly smallest: number;
}

/**
 * Counts the starts in every window of `lengthMs` that begins at a whole millisecond and lies between `from` and `to`, ms in whole numbers.
 * The end of a window is not part of it.
 */
export function windowsOf(
  starts: readonly number[],
  lengthMs: number,
  from = Math.min(...starts),
  to = Math.max(...starts) + 1,
): Windows {
  const inMs = new Uint32Array(Math.max(to - from, lengthMs));
  for (const at of starts) if (at >= from && at < to) inMs[at - from]! += 1;
  let count = 0;
  let [largest, smallest] = [0, Number.POSITIVE_INFINITY];
  for (let ms = 0; ms < inMs.length; ms++) {
    count += inMs[ms]! - (inMs[ms - lengthMs] ?? 0);
    if (ms + 1 < lengthMs) continue;
    largest = Math.max(largest, count);
    smallest = Math.min(smallest, count);
  }
  return { largest, smallest };
}
