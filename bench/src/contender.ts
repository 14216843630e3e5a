/** The data of a job; about 60 bytes of JSON without a note. */
export interface Payload {
  readonly n: number;
  readonly to: string;
  readonly template: string;
  readonly note?: string;
}

export function payload(n: number): Payload {
  return { n, to: `user${n}@example.com`, template: 'welcome' };
}

/** Notes are slices of it, so that many long payloads share its memory. */
const INK = 'x'.repeat(1_048_576);

/** The same with a note that makes the JSON `bytes` long, at most 1 MiB. */
export function payloadOf(bytes: number, n: number): Payload {
  const bare = { ...payload(n), note: '' };
  return { ...bare, note: INK.slice(0, bytes - JSON.stringify(bare).length) };
}

/**
 * What not every contender can do. A scenario names what it needs, and a contender that cannot do it has a dash there.
 * - `acknowledged`: a job that a crash interrupts runs again.
 * - `retries`: a job whose handler throws runs again, after a delay.
 * - `delays`: a job may be added for a time to come.
 * - `schedules`: a job is made every so often, once for all processes.
 * - `results`: what the handler returned is kept in Redis beside the job.
 * - `events`: another process hears that a job has ended.
 * - `replicas`: an add can wait until a replica has the job.
 * - `groups`: jobs of one group run one at a time, in the order in which they were added, and other groups run beside them.
 * - `turns`: groups take turns, so a group with many jobs does not delay the others.
 * - `rates`: the starts of a queue are limited per time, over all processes.
 */
export type Feature =
  | 'acknowledged'
  | 'retries'
  | 'delays'
  | 'schedules'
  | 'results'
  | 'events'
  | 'replicas'
  | 'groups'
  | 'turns'
  | 'rates';

/** One system under measurement: how to open it, and what must be known to read its figures fairly. */
export interface Contender {
  /** Its name in `--contenders`, and the title of its column. */
  readonly name: string;
  /** Packages whose versions are in the report. */
  readonly packages: readonly string[];
  /** Its guarantees and settings, printed under the table. */
  readonly terms: readonly string[];
  readonly offers: readonly Feature[];
  /** By how much its retries may come too early; also named in its terms. @default 0 */
  readonly retriesEarlyMs?: number;
  open(options: OpenOptions): Promise<Session>;
}

export interface OpenOptions {
  readonly url: string;
  readonly queues: readonly string[];
  /** Retry settings of a job, in the form of the contender. @default its own default */
  readonly retry?: Retry;
  /** `replicated`: an add resolves once a replica has the job. @default its own default */
  readonly durability?: 'local' | 'replicated';
  /** Ended jobs and their results stay in Redis, the last 1,000 at least. @default they leave nothing */
  readonly keepResults?: boolean;
  /**
   * Called in this process for each job that completes after `open` has resolved, wherever it ran. Absent: nobody
   * subscribes.
   */
  readonly watch?: (queue: string) => void;
  /**
   * Called in this process for each job that starts after `open` has resolved, wherever it runs, with the time of the start by the
   * clock of Redis in ms since 1970; needs `rates`. Absent: nobody subscribes.
   */
  readonly watchStarts?: (atMs: number) => void;
  /** The groups of the jobs; needs `groups` or `turns`. @default none */
  readonly groups?: Grouping;
  /** How many jobs of each queue may start in a time; needs `rates`. @default no limit */
  readonly rate?: Rate;
  /** How long a worker may be silent before its jobs run again elsewhere. @default its own default */
  readonly leaseMs?: number;
  /** How jobs are handled. Without it, the application only adds. */
  readonly work?: Work;
}

export interface Retry {
  /** Runs in all. */
  readonly attempts: number;
  readonly backoff: 'exponential' | 'fixed';
  readonly delayMs: number;
}

interface Grouping {
  /** The group of job `n`. */
  readonly of: (n: number) => string;
  /** Whether jobs of a group must run one at a time, in the order in which they were added; needs `groups`. */
  readonly isOneAtATime: boolean;
}

export interface Rate {
  readonly max: number;
  readonly perMs: number;
}

export interface Work {
  /** Concurrent jobs per queue. */
  readonly concurrency: number;
  /** The handler. It may return a value (the result) or a promise of one, and may throw. */
  readonly handle: (data: Payload) => unknown;
}

export interface AddOptions {
  /** The delay of the job; needs `delays`. */
  readonly delayMs?: number;
}

/** A running application of a contender. */
export interface Session {
  add(queue: string, data: Payload, options?: AddOptions): Promise<unknown>;
  /** One call with at most 1,000 jobs. */
  addBulk(queue: string, data: readonly Payload[], options?: AddOptions): Promise<unknown>;
  /** The kept result of the job with this answer of `add`; undefined if there is none. Needs `results`. */
  resultOf?(queue: string, added: unknown): Promise<unknown>;
  /**
   * A job with this data every `everyMs`, under this id; needs `schedules`. Answers one of the moments at which it is due, ms since
   * 1970; the others are whole intervals from it.
   */
  schedule?(queue: string, id: string, everyMs: number, data: Payload): Promise<number>;
  /** Jobs that have not ended: waiting, delayed and running. */
  outstanding(queue: string): Promise<number>;
  close(): Promise<void>;
}
