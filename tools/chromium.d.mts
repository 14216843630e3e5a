/**
 * Returns the path of a Chromium or Chrome that runs: CHROME_PATH if it is set, otherwise the first on PATH.
 * If there is none, it installs Debian's `chromium` (as root or with passwordless sudo). If that fails, it
 * rejects with a message that says how to get one. As root, the browser needs the argument `--no-sandbox`.
 */
export function findChromium(): Promise<string>;
