export interface Point {
  readonly x: number;
  readonly y: number;
}

/** y = factor · x^exponent, the straight line of a plot whose axes are both logarithmic. */
export interface Fit {
  /** The slope of that line: 0 does not depend on x, 1 grows in step with it, −1 halves where x doubles. */
  readonly exponent: number;
  readonly factor: number;
}

/** Least squares through the logarithms; undefined where there are fewer than two different x, or nothing above 0. */
export function fitPower(points: readonly Point[]): Fit | undefined {
  const logs = points
    .filter(({ x, y }) => x > 0 && y > 0)
    .map(({ x, y }) => ({ x: Math.log(x), y: Math.log(y) }));
  const mid = { x: mean(logs.map(({ x }) => x)), y: mean(logs.map(({ y }) => y)) };
  let along = 0;
  let across = 0;
  for (const { x, y } of logs) {
    along += (x - mid.x) ** 2;
    across += (x - mid.x) * (y - mid.y);
  }
  if (logs.length < 2 || along === 0) return undefined;
  const exponent = across / along;
  return { exponent, factor: Math.exp(mid.y - exponent * mid.x) };
}

export function valueAt({ exponent, factor }: Fit, x: number): number {
  return factor * x ** exponent;
}

/** By which share the fitted value changes from one x to another: −0.1 is a fall by a tenth. */
export function changeOver({ exponent }: Fit, from: number, to: number): number {
  return (to / from) ** exponent - 1;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
