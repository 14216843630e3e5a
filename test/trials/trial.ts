import type { Lab } from './lab.js';

/** One promise, and how it is measured. */
export interface Trial {
  readonly name: string;
  /** Its description, for `--list`. */
  readonly what: string;
  /** Repetitions, unless `--times` says otherwise. */
  readonly times: number;
  /** Number of jobs, where it matters, unless `--jobs` says otherwise. */
  readonly jobs?: number;
  readonly run: (lab: Lab) => Promise<void>;
}

/** A figure and its bound. */
export interface Result {
  readonly trial: string;
  readonly what: string;
  readonly figure: number;
  readonly unit: string;
  /** The bound as text, such as `≤ 10 s`. Undefined for a figure without a bound. */
  readonly must?: string;
  readonly pass: boolean;
}
