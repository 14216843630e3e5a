/** Durations as the pages show them. */

/** A number with its unit, which stay on one line. */
export const withUnit = (value: number | string, name: string): string => `${value}\u00a0${name}`;

/** Two units at most: `3 min 20 s`. */
export function span(ms: number): string {
  const abs = Math.abs(ms);
  if (abs < 1_000) return withUnit(Math.round(abs), 'ms');
  const seconds = abs / 1_000;
  if (seconds < 10) return withUnit(seconds.toFixed(1), 's');
  if (seconds < 60) return withUnit(Math.floor(seconds), 's');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return two(minutes, 'min', Math.floor(seconds % 60), 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return two(hours, 'h', minutes % 60, 'min');
  return two(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function two(large: number, name: string, small: number, smallName: string): string {
  return small === 0 ? withUnit(large, name) : `${withUnit(large, name)} ${withUnit(small, smallName)}`;
}

export function micros(us: number): string {
  return us < 1_000
    ? withUnit(us, 'µs')
    : us < 1_000_000
      ? withUnit((us / 1_000).toFixed(us < 10_000 ? 2 : 1), 'ms')
      : span(us / 1_000);
}
