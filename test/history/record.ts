/** What a process may do to a queue, and what a run of chaos does to the processes. */
export const VERBS = [
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

/** `indeterminate`: nobody knows whether it happened; it may do so at any time after its start, or never. */
export type Outcome = 'ok' | 'error' | 'indeterminate';

/** One call, as one line of JSON. Times are ms of one monotonic clock that all processes of the machine share. */
export interface Call {
  readonly process: string;
  readonly verb: Verb;
  readonly queue: string;
  readonly id: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly start: number;
  /** Null: the process ended, or the run was over, before there was an answer. */
  readonly end: number | null;
  readonly outcome: Outcome;
  readonly value: unknown;
}

/** What an `add` says of the job, in `args`. */
export interface AddArgs {
  /** Unique among all adds of the history; the data of the job carries it, so that each run names the add it comes from. */
  readonly tag: string;
  readonly delay?: number;
  readonly priority?: number;
  readonly attempts?: number;
  readonly backoff?: number;
  readonly expiresIn?: number;
  /** How long the completed job stays, in ms. */
  readonly retention?: number;
}

/** How a handler ended, in the `value` of a `run`. */
export type Ending =
  /** It returned. */
  | 'returned'
  /** It threw, and attempts are left. */
  | 'failed'
  /** It threw, and none is left, or said that none would help. */
  | 'buried'
  | 'snoozed'
  /** The worker stops or has lost its lease: the job is given back. */
  | 'given-back';

export interface RunArgs {
  readonly tag: string;
  /** Unique in its process. */
  readonly run: number;
  readonly attempt: number;
}

export interface RunValue {
  readonly ending: Ending;
  readonly result?: unknown;
  /** Of `snoozed`: for how long, in ms. */
  readonly snooze?: number;
}

/** What the jobs of one call must begin in, by one worker that runs one job at a time. */
export interface BatchArgs {
  readonly tags: readonly string[];
}

export interface FaultArgs {
  readonly kind: string;
  /** The process that it met, or whose line it met. */
  readonly met?: string;
  /** Between these times, on the clock of the history, the store acknowledged what it does not know any more. */
  readonly forgets?: { readonly from: number; readonly to: number };
}

export interface ScheduleArgs {
  /** The tag of its jobs, and what comes before the `@` in their ids. */
  readonly tag: string;
  /** Ms between two occurrences, none of which may be left out. */
  readonly every: number;
}
