export const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';

/** Every number of two digits. */
export const PAIRS: readonly string[] = Array.from(
  { length: 36 * 36 },
  (_, n) => DIGITS.charAt(Math.floor(n / 36)) + DIGITS.charAt(n % 36),
);

/** So many ms all digits but the last three stay the same: 46 s. */
const STEP = 36 ** 3;

let lastMs = -1;
let lastText = '';
let lastStep = -1;
let stepText = '';

/**
 * A time in base 36, as the ids and the bodies of jobs hold it. Both ask for the same one, and the next job mostly comes soon, so
 * only what has changed is written anew.
 */
export function timeText(ms: number): string {
  if (ms === lastMs) return lastText;
  // There are no other digits that could stay.
  if (!(ms >= STEP)) return ms.toString(36);
  const step = Math.floor(ms / STEP);
  if (step !== lastStep) {
    lastStep = step;
    stepText = step.toString(36);
  }
  const rest = ms - step * STEP;
  lastMs = ms;
  lastText = stepText + PAIRS[Math.floor(rest / 36)]! + DIGITS.charAt(rest % 36);
  return lastText;
}
