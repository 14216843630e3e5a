import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK = 1 << 20;
const NEWLINE = 10;

/** Calls `see` with the words of each line. An incomplete last line is skipped. */
export function readLedger(path: string, see: (words: readonly string[]) => void): void {
  const file = openSync(path, 'r');
  const buffer = Buffer.allocUnsafe(CHUNK);
  let rest = '';
  try {
    for (let size = readSync(file, buffer); size > 0; size = readSync(file, buffer)) {
      const end = buffer.lastIndexOf(NEWLINE, size - 1);
      if (end === -1) {
        rest += buffer.toString('latin1', 0, size);
        continue;
      }
      for (const line of (rest + buffer.toString('latin1', 0, end)).split('\n')) see(line.split(' '));
      rest = buffer.toString('latin1', end + 1, size);
    }
  } finally {
    closeSync(file);
  }
}
