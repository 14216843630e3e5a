import type { Duration } from '../job/duration.js';
import type { DataIn, NameIn } from '../job/queue-jobs.js';
import type { AddResult } from './add-result.js';
import type { JobOptions } from '../options/job-options.js';

/** One entry of `addBulk`. */
export interface BulkJob<Name extends string = string, Data = unknown> {
  /** Name of the job; selects the handler. */
  readonly name: Name;
  /** Anything that JSON can represent. */
  readonly data: Data;
  /** Options of this job; they win over those of the queue. */
  readonly options?: JobOptions;
}

/** One entry of `addBulk` with a definition. */
export interface BulkItem<Input> {
  /** The input of the definition's schema. */
  readonly data: Input;
  /** Options of this job; they win over those of the queue. */
  readonly options?: JobOptions;
}

/** An entry of `addBulk` of a `Queue<Jobs>`. */
export type BulkJobIn<Jobs> = {
  [Name in NameIn<Jobs>]: BulkJob<Name, DataIn<Jobs, Name>>;
}[NameIn<Jobs>];

/** Options of `addAndWait`. */
export interface WaitOptions extends JobOptions {
  /** How long to wait for the end of the job. @default '30s' */
  readonly waitTimeout?: Duration;
  /** Ends the wait; `addAndWait` rejects with the reason of the signal. The job continues. @default none */
  readonly signal?: AbortSignal;
  /** Whether to answer with the id and `duplicate` too. @default false */
  readonly detail?: false;
}

/** Options of `addAndWait` that ask for a `WaitAnswer`. */
export interface DetailedWaitOptions extends Omit<WaitOptions, 'detail'> {
  /** Answers with the id and `duplicate` too. */
  readonly detail: true;
}

/** The result of `addAndWait` with `detail: true`. */
export interface WaitAnswer<Result = unknown> extends AddResult {
  /** The return value of the handler, after a JSON round trip. */
  readonly result: Result;
}
