import fc from 'fast-check';

/** The same calls again: `GODWIT_FUZZ_SEED=123 npx vitest run test/fuzz`. */
const SEED = Number(process.env['GODWIT_FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
/** More of them: `GODWIT_FUZZ_TIMES=100`. */
export const TIMES = Number(process.env['GODWIT_FUZZ_TIMES'] ?? 1);

/** Time for a test that runs so many times as much. */
export const patience = (ms: number): number => ms * Math.max(1, TIMES);

/**
 * Holds for every value, tried `runs` times; says its seed, so that what one run has found another finds again. `isStateful`: what
 * one value did is there for the next, so that a smaller one tried afterwards would fail in its own way and hide the first failure.
 */
export async function holds<T>(
  values: fc.Arbitrary<T>,
  runs: number,
  test: (value: T) => Promise<void>,
  { isStateful = false } = {},
): Promise<void> {
  console.log(`seed ${SEED}, ${runs * TIMES} runs`);
  await fc.assert(fc.asyncProperty(values, test), {
    seed: SEED,
    numRuns: runs * TIMES,
    endOnFailure: isStateful,
  });
}
