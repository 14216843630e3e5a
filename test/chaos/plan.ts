import type { Kind } from './load.js';

/** The one queue of a run. */
export const QUEUE = 'work';
export const PREFIX = 'chaos';

/** What a process is told to be; it survives JSON. */
export interface ChildPlan {
  readonly url: string;
  /** File of its own for what it did. */
  readonly ledger: string;
  /** Times in ledgers are ms since this moment (ms since 1970). */
  readonly epoch: number;
  readonly seed: number;
  readonly leaseMs: number;
  readonly concurrency: number;
  /** Which engine to be instead of the true one, for a run that must be found out. */
  readonly broken?: Broken;
  readonly produce?: ProducePlan;
  readonly proxy?: { readonly lines: number };
  readonly mixed: MixedPlan;
}

export type Broken = 'no-fencing' | 'pop-and-forget';

/** The calls of every kind, beside the many plain jobs. */
export interface MixedPlan {
  /** Folder of the histories of all processes, and this process' own file there. */
  readonly dir: string;
  readonly file: string;
  /** The moment 0 of their clock. */
  readonly epoch: number;
  /** For how long a producer makes them, in ms; at least until its plain jobs are in. */
  readonly ms: number;
}

/** Nonces of one producer: `first`, `first + stride`, … so that those of all producers are dense. */
export interface ProducePlan {
  readonly first: number;
  readonly stride: number;
  /** Jobs to be accepted. */
  readonly jobs: number;
  /** Jobs per second; 0: as many as the backlog allows. */
  readonly rate: number;
  /** Whether ids are left to the library. */
  readonly generatedIds: boolean;
}

export type Told =
  | { readonly do: 'die'; readonly when: 'after-end' | 'mid-settle' | 'mid-add'; readonly count: number }
  | { readonly do: 'add'; readonly kind: Kind; readonly ms: number }
  | { readonly do: 'flow'; readonly open: boolean }
  | { readonly do: 'finish' | 'audit' | 'look' }
  | LineAct;

/** What the proxy does to the line with this number. */
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
  /** The job it was told to add is in. */
  | { readonly say: 'accepted' }
  /** What became of the jobs of the mixed queues is in its history. */
  | { readonly say: 'looked' }
  | { readonly say: 'done' };

/** How far a process is, for the table that people watch; what counts is in the ledger. */
export interface Figures {
  readonly added: number;
  readonly completed: number;
  readonly running: number;
  readonly rss: number;
  readonly cuts: number;
}
