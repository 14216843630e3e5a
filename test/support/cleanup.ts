/** What the helpers of the running test have opened, closed in reverse order when the test ends, however it ends. */
const stack: (() => unknown)[] = [];

/** Calls `close` at the end of the running test, before it is checked for what it left behind. */
export function atEnd(close: () => unknown): void {
  stack.push(close);
}

/** Closes everything, also when one of them fails; then throws what failed. */
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
