import type { Redis } from 'ioredis';
import type { Contender } from './contender.js';

/** One thing that is measured, for any contender. */
export interface Scenario {
  /** What `--only` takes. */
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  /** Those that can do it; the others are left out. @default all */
  readonly contenders?: readonly string[];
  /** Runs in a process of its own before the measured one, so that it neither warms nor litters that one. */
  prepare?(lab: Lab): Promise<void>;
  /** One value per figure, under its key. */
  measure(lab: Lab): Promise<Record<string, number>>;
}

export interface Figure {
  readonly key: string;
  readonly title: string;
  readonly unit: string;
  readonly better: 'more' | 'less';
}

/** What a scenario works with inside its process. */
export interface Lab {
  readonly contender: Contender;
  readonly url: string;
  /** Size of the run, from `--jobs`. */
  readonly jobs: number;
  /** A connection of the suite itself, for INFO and CLIENT LIST. */
  readonly control: Redis;
  /** Says that `done` of `total` steps are behind us; a process that says nothing for long is ended. */
  readonly progress: (done: number, total: number) => void;
}

/** The queue of every scenario that needs one. */
export const QUEUE = 'bench';
