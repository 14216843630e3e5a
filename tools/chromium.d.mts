/**
 * The path of a Chromium or Chrome that runs: CHROME_PATH where it is set, else the first on PATH, else Debian's
 * `chromium`, installed as root or with passwordless sudo; else it rejects with a text that says how to get one.
 * As root it needs the argument `--no-sandbox`.
 */
export function findChromium(): Promise<string>;
