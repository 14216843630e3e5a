import type { Redis } from 'ioredis';
import type { Contender, Feature } from './contender.js';

/** One thing that is measured, for any contender. */
export interface Scenario {
  /** What `--only` takes. */
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  /** How many jobs are enough where `--jobs` asks for so many, so that no measurement takes long. @default as many */
  jobs?(asked: number): number;
  /** What a contender must offer to take part; the others are left out. @default nothing */
  readonly needs?: readonly Feature[];
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
  /** Jobs to measure, those of a warm-up apart: what the scenario makes of `--jobs`. */
  readonly jobs: number;
  /** A connection of the suite itself, for INFO and CLIENT LIST. */
  readonly control: Redis;
  /** Says that `done` of `total` steps are behind us; a process that says nothing for long is ended. */
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
