import type { Kind } from './load.js';

/** The queue of a run. */
export const QUEUE = 'work';
export const PREFIX = 'chaos';

/** The order to a process; it must survive JSON. */
export interface ChildPlan {
  readonly url: string;
  /** Ledger of the process. */
  readonly ledger: string;
  /** Times in ledgers are ms since this moment (ms since 1970). */
  readonly epoch: number;
  readonly seed: number;
  readonly leaseMs: number;
  readonly concurrency: number;
  /** The broken engine to use, in a run that must fail. */
  readonly broken?: Broken;
  readonly produce?: ProducePlan;
  readonly proxy?: { readonly lines: number };
  readonly mixed: MixedPlan;
}

export type Broken = 'no-fencing' | 'pop-and-forget';

/** Calls of every kind, besides the many plain jobs. */
interface MixedPlan {
  /** Folder of the histories of all processes, and the file of this process in it. */
  readonly dir: string;
  readonly file: string;
  /** Moment 0 of their clock. */
  readonly epoch: number;
  /** How long a producer makes them, in ms; at least until its plain jobs are added. */
  readonly ms: number;
}

/** Nonces of one producer: `first`, `first + stride`, … so that the nonces of all producers have no gaps. */
interface ProducePlan {
  readonly first: number;
  readonly stride: number;
  /** Jobs to be accepted. */
  readonly jobs: number;
  /** Jobs per second; 0: as many as the backlog allows. */
  readonly rate: number;
  /** Whether the library generates the ids. */
  readonly generatedIds: boolean;
}

export type Told =
  | { readonly do: 'die'; readonly when: 'after-end' | 'mid-settle' | 'mid-add'; readonly count: number }
  | { readonly do: 'add'; readonly kind: Kind; readonly ms: number }
  | { readonly do: 'flow'; readonly open: boolean }
  | { readonly do: 'finish' | 'audit' | 'look' }
  | LineAct;

/** The fault that the proxy causes on the connection with this number. */
export type LineAct =
  | { readonly do: 'cut'; readonly line: number; readonly direction: 'up' | 'down'; readonly bytes: number }
  | { readonly do: 'delay'; readonly line: number; readonly ms: number }
  | { readonly do: 'half-open'; readonly line: number; readonly share: number }
  | { readonly do: 'bandwidth'; readonly line: number; readonly bytesPerSecond: number }
  | { readonly do: 'heal'; readonly line: number };

export type Said =
  | { readonly say: 'ready'; readonly ports?: readonly number[] }
  | { readonly say: 'figures'; readonly figures: Figures }
  | { readonly say: 'audited'; readonly checked: number; readonly violations: readonly string[] }
  /** The job that it was told to add is added. */
  | { readonly say: 'accepted' }
  /** The ends of the jobs of the mixed queues are in its history. */
  | { readonly say: 'looked' }
  | { readonly say: 'done' };

/** Progress of a process, for the table on the terminal; the ledger has the exact figures. */
export interface Figures {
  readonly added: number;
  readonly completed: number;
  readonly running: number;
  readonly rss: number;
  readonly cuts: number;
}
