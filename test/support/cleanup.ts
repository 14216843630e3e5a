import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Things that the helpers of the running test have opened. They are closed in reverse order when the test ends, also
 * when it fails.
 */
const stack: (() => unknown)[] = [];

/** Calls `close` at the end of the running test, before the check for what the test left behind. */
export function atEnd(close: () => unknown): void {
  stack.push(close);
}

/** A folder for the running test. It is removed when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'godwit-spec-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Closes everything, even if one of them fails, and then throws the errors. */
export async function runCleanup(): Promise<void> {
  const failures: unknown[] = [];
  for (let close = stack.pop(); close; close = stack.pop()) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1)
    throw new AggregateError(failures, 'several things of this test could not be closed');
}
