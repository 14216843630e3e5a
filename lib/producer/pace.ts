import { pause } from '../contract/retry.js';
import { InvalidOptionError } from '../errors.js';
import { field, refuse, rule, shape } from '../options/check.js';
import { checkSignal } from '../options/job-options.js';
import { readPlainRate, type RateOptions } from '../options/limit-options.js';

/** How `dead.retry`, `remove`, `cancel` and `promote` work through all jobs that match a filter. */
export interface BulkPace {
  /** At most `max` jobs in `per`, evenly spaced. @default as fast as Redis answers */
  readonly rate?: Pick<RateOptions, 'max' | 'per'>;
  /** Called after each step with the number of jobs that are changed so far. @default none */
  readonly onProgress?: (done: number) => void;
  /** Stops the call after the current step. It then returns the number of jobs that it has changed. @default none */
  readonly signal?: AbortSignal;
}

const readPace = shape({
  rate: field('rate', readPlainRate),
  onProgress: field('onProgress', rule(checkListener)),
  signal: field('signal', rule(checkSignal)),
});
/** A pace after checking. */
export type CheckedPace = NonNullable<ReturnType<typeof readPace>>;

function checkListener(value: unknown, path: string): (done: number) => void {
  if (typeof value === 'function') return value as (done: number) => void;
  throw new InvalidOptionError(path, 'a function', value);
}

/** @throws {InvalidOptionError} */
export function paceOf(given: unknown, call: string): CheckedPace | undefined {
  return given === undefined ? undefined : readPace(given, `${call}.pace`, refuse)!;
}

/** At a rate, one step changes the jobs of this time, but at least one. */
const STEP_MS = 100;

/** Divides a list of ids into steps, and waits between them. */
export class Pacer {
  private readonly gapMs: number;
  private readonly began = performance.now();
  private nextAt = 0;
  private done = 0;

  constructor(
    private readonly pace: CheckedPace | undefined,
    /** Maximum size of a step. */
    private readonly most: number,
  ) {
    const { rate } = pace ?? {};
    this.gapMs = rate ? rate.per / rate.max : 0;
  }

  get isStopped(): boolean {
    return this.pace?.signal?.aborted === true;
  }

  /** Time since the call began, in whole ms. */
  get passedMs(): number {
    return Math.floor(performance.now() - this.began);
  }

  /** The next step of these ids after the first `from`, as soon as the rate allows it. Null at the end, or after a stop. */
  async step<Id>(ids: readonly Id[], from: number, limit = Infinity): Promise<readonly Id[] | null> {
    if (from >= ids.length || limit <= 0 || this.isStopped) return null;
    const restMs = this.nextAt - performance.now();
    if (restMs > 0) await pause(restMs, this.pace?.signal);
    if (this.isStopped) return null;
    const size = Math.min(this.most, limit, Math.max(1, Math.floor(STEP_MS / this.gapMs)));
    const some = ids.slice(from, from + size);
    this.nextAt = performance.now() + some.length * this.gapMs;
    return some;
  }

  /** Reports that a step has changed so many jobs. */
  add(count: number): void {
    this.done += count;
    this.pace?.onProgress?.(this.done);
  }
}
