/** How jobs end; scripts, events and docs use the same words. */

/** Every reason why a job can be dead. */
export const DEAD_REASONS = [
  'unrecoverable',
  'retries-exhausted',
  'malformed',
  'no-handler',
  'stalled',
  'expired',
  'undecodable',
  'corrupt',
] as const;

/** Why a job is dead. */
export type DeadReason = (typeof DEAD_REASONS)[number];

/** The last error of a job, as plain data. */
export interface FailureRecord {
  /** Name of the error; `NonError` if something else was thrown. */
  readonly name: string;
  /** At most 4 KiB. */
  readonly message: string;
  /** At most 16 KiB; absent if the error had none. */
  readonly stack?: string;
  /** The attempt that failed, from 1. For a job that could not be run, the last attempt before, or 0. */
  readonly attempt: number;
  /** Set if this failure made the job dead. */
  readonly reason?: DeadReason;
}

/** A failed attempt, in short. */
export interface AttemptRecord {
  /** From 1. */
  readonly attempt: number;
  /** When it failed, ms by the clock of Redis. */
  readonly at: number;
  /** Wall time of the handler in microseconds. */
  readonly durationUs: number;
  /** The worker that ran it. */
  readonly worker: string;
  /** Of the error. */
  readonly name: string;
  /** At most 500 characters. */
  readonly message: string;
  /** The first calls of the stack. */
  readonly stack?: string;
}

/** The facts about a run that the engine needs to settle it and to write the event. */
export interface SettledRun {
  readonly id: string;
  readonly name: string;
  /** From 1. */
  readonly attempt: number;
  /** Wall time of the handler in microseconds. */
  readonly durationUs: number;
  readonly outcome: Outcome;
  /** How many workers died while they ran the job. */
  readonly stalls?: number;
}

/** The stored result of a completed job. */
export interface KeptResult {
  /** JSON of what the handler returned; undefined if it returned nothing, or if its result could not be stored. */
  readonly result: string | undefined;
  /** Why its result could not be stored. */
  readonly resultFault?: string;
}

/** How one run ended. */
export type Outcome =
  | {
      readonly kind: 'completed';
      readonly keep?: KeptResult & { readonly forMs: number };
      /** The result in the event. */
      readonly eventResult?: KeptResult;
    }
  | {
      readonly kind: 'retried';
      readonly delayMs: number;
      /** The error; null for a snooze. */
      readonly failure: FailureRecord | null;
      readonly priority: number;
      /** False for a snooze: the run is not counted as an attempt. */
      readonly counted: boolean;
      /** False if no handler was called, so that the job may still expire. @default true */
      readonly started?: false;
    }
  | {
      readonly kind: 'dead';
      readonly reason: DeadReason;
      readonly failure: FailureRecord;
      /** Whether a handler ran and failed, as opposed to a job that could not be run. */
      readonly counted: boolean;
    }
  /**
   * The job is given back unfinished, to the front of the waiting jobs, and the attempt is not counted. `started`: whether its
   * handler had been called.
   */
  | { readonly kind: 'released'; readonly started?: boolean };
