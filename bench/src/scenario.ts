import type { Redis } from 'ioredis';
import type { Contender, Feature } from './contender.js';

/** A measurement that any contender can take part in. */
export interface Scenario {
  /** Its name in `--only`. */
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  /** How many jobs are enough where `--jobs` asks for so many, so that no measurement takes long. @default as many */
  jobs?(asked: number): number;
  /** The abilities that a contender needs to take part. @default none */
  readonly needs?: readonly Feature[];
  /** Runs in a process of its own before the measured one, so that it does not warm that one up. */
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

/** The arguments of a scenario inside its process. */
export interface Lab {
  readonly contender: Contender;
  readonly url: string;
  /** Jobs to measure, without those of a warm-up. */
  readonly jobs: number;
  /** A connection of the suite itself, for INFO and CLIENT LIST. */
  readonly control: Redis;
  /** Reports that `done` of `total` steps are finished. A process that is silent for long is ended. */
  readonly progress: (done: number, total: number) => void;
}

/** How many jobs a scenario measures where `--jobs` asks for so many. */
export function jobsOf(scenario: Scenario, asked: number): number {
  return scenario.jobs?.(asked) ?? asked;
}

/** Whether a contender takes part. */
export function suits({ needs = [] }: Scenario, { offers }: Pick<Contender, 'offers'>): boolean {
  return needs.every((feature) => offers.includes(feature));
}

/** The queue of every scenario that needs one. */
export const QUEUE = 'bench';
