import type { Parameters } from 'fast-check';

/** The number of sequences, and the seed. The specs play a few; `npm run test:model` plays 2,000 or more. */
const { MODEL_RUNS = '200', MODEL_SEED = '20260101', MODEL_PATH, MODEL_REPLAY } = process.env;

interface Runs {
  readonly parameters: Parameters<unknown>;
  /** Of the test, in ms. */
  readonly timeout: number;
  /** For `fc.commands`, to repeat a failed sequence. */
  readonly replayPath: string | undefined;
  /** Called once per sequence; prints the progress from time to time. */
  tick(): void;
}

/** The sequences of one driver: its share of all. A failure is reported with its seed and path. */
export function runsOf(driver: string, share: number): Runs {
  const numRuns = Math.max(1, Math.round(Number(MODEL_RUNS) * share));
  const every = Math.max(1_000, Math.ceil(numRuns / 20));
  const began = performance.now();
  let played = 0;
  const timeout = 60_000 + numRuns * 1_000;
  return {
    parameters: {
      numRuns,
      seed: Number(MODEL_SEED),
      // Making a failed sequence shorter can take minutes. The failure is reported before the test times out.
      interruptAfterTimeLimit: timeout - 10_000,
      markInterruptAsFailure: true,
      ...(MODEL_PATH === undefined ? {} : { path: MODEL_PATH }),
    },
    timeout,
    replayPath: MODEL_REPLAY,
    tick() {
      played += 1;
      if (played % every !== 0 || numRuns < 5_000) return;
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      process.stderr.write(
        `${driver}: ${played} of ${numRuns} sequences in ${seconds} s, seed ${MODEL_SEED}\n`,
      );
    },
  };
}
