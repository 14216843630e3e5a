import type { Lab } from './lab.js';

/** One row of what is promised, measured. */
export interface Trial {
  readonly name: string;
  /** What is done, for `--list`. */
  readonly what: string;
  /** Repetitions, unless `--times` says otherwise. */
  readonly times: number;
  /** Jobs, where their number matters, unless `--jobs` says otherwise. */
  readonly jobs?: number;
  readonly run: (lab: Lab) => Promise<void>;
}

/** A figure and what it must be. */
export interface Result {
  readonly trial: string;
  readonly what: string;
  readonly figure: number;
  readonly unit: string;
  /** In words, such as `≤ 10 s`; undefined for a figure that is only told. */
  readonly must?: string;
  readonly pass: boolean;
}
