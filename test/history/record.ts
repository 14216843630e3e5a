/** The calls of a process on a queue, and the faults that a chaos run causes. */
const VERBS = [
  'add',
  'cancel',
  'remove',
  'get',
  'retry',
  'promote',
  'clean',
  'pause',
  'resume',
  'wait',
  'schedule',
  'run',
  'settle',
  'batch',
  'fault',
] as const;

export type Verb = (typeof VERBS)[number];

/** `indeterminate`: unknown whether it happened; it may happen at any time after its start, or never. */
export type Outcome = 'ok' | 'error' | 'indeterminate';

/** One call, as one line of JSON. Times are ms of a monotonic clock that all processes of the machine share. */
export interface Call {
  readonly process: string;
  readonly verb: Verb;
  readonly queue: string;
  readonly id: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly start: number;
  /** Null if the process or the run ended before the answer. */
  readonly end: number | null;
  readonly outcome: Outcome;
  readonly value: unknown;
}

/** The job of an `add`, in `args`. */
export interface AddArgs {
  /** Unique among all adds of the history. The data of the job contains it, so each run can be matched with its add. */
  readonly tag: string;
  readonly delay?: number;
  readonly priority?: number;
  readonly attempts?: number;
  readonly backoff?: number;
  readonly expiresIn?: number;
  /** How long a completed job is kept, in ms. */
  readonly retention?: number;
}

/** How a handler ended, in the `value` of a `run`. */
export type Ending =
  /** It returned. */
  | 'returned'
  /** It threw an error, and attempts are left. */
  | 'failed'
  /** It threw an error, and no attempts are left or it is unrecoverable. */
  | 'buried'
  | 'snoozed'
  /** The job is given back: the worker stops or has lost its lease. */
  | 'given-back';

export interface RunArgs {
  readonly tag: string;
  /** Unique within its process. */
  readonly run: number;
  readonly attempt: number;
}

export interface RunValue {
  readonly ending: Ending;
  readonly result?: unknown;
  /** The delay of a snooze, in ms. */
  readonly snooze?: number;
}

/** Jobs of one call that one worker with concurrency 1 must start in this order. */
export interface BatchArgs {
  readonly tags: readonly string[];
}

export interface FaultArgs {
  readonly kind: string;
  /** The process that a fault hit, or whose connection it hit. */
  readonly met?: string;
  /** The store lost calls that it acknowledged between these times, on the clock of the history. */
  readonly forgets?: { readonly from: number; readonly to: number };
}

export interface ScheduleArgs {
  /** The tag of its jobs, and the part of their ids before `@`. */
  readonly tag: string;
  /** Ms between two occurrences; none may be skipped. */
  readonly every: number;
}
