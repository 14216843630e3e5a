import type { Contender } from '../contender.js';
import { suits, type Figure, type Scenario } from '../scenario.js';
import type { Turn } from '../run/turn.js';

/** One measurement at several sizes, each size a scenario of its own. */
export interface Growth {
  /** Its name in `--only`. */
  readonly name: string;
  readonly title: string;
  /** The quantity that grows. */
  readonly axis: Axis;
  readonly sizes: readonly number[];
  /** Largest size at which peers are measured, because larger ones take them too long. @default all sizes */
  readonly peersUpTo?: number;
  readonly figures: readonly Figure[];
  /** Figures that may get worse by at most the share `worse` up to a size. */
  readonly promise?: { readonly figures: readonly string[]; readonly upTo: number; readonly worse: number };
  /** Notes that a reader needs to understand the figures. */
  readonly notes: readonly string[];
  /** Memory that Redis needs at this size, in bytes, for the contender that needs most. @default 0 */
  readonly memory?: (size: number) => number;
  at(size: number): Pick<Scenario, 'jobs' | 'prepare' | 'measure'>;
}

interface Axis {
  readonly title: string;
  /** @default none: a count */
  readonly unit?: 'bytes';
  /** The marks are its powers. */
  readonly base: 4 | 10;
}

export function scenarioAt(growth: Growth, size: number): Scenario {
  const { name, title, figures } = growth;
  return { name: `${name}@${size}`, title: `${title}: ${size}`, figures, ...growth.at(size) };
}

/**
 * One round, from the smallest size to the largest. So a drift of the machine shows between rounds and does not look
 * like growth.
 */
export function roundOf(
  growth: Growth,
  sizes: readonly number[],
  [first, ...peers]: readonly Contender[],
  round: number,
): Turn[] {
  return sizes.flatMap((size) => {
    const scenario = scenarioAt(growth, size);
    const taking = size > (growth.peersUpTo ?? Infinity) ? [first!] : [first!, ...peers];
    return taking
      .filter((contender) => suits(scenario, contender))
      .map(({ name: contender }) => ({ scenario, contender, round }));
  });
}

/**
 * Sizes for which half of the free memory is enough. The rest is for the processes, and for a Redis that copies a
 * table.
 */
export function sizesThatFit({ sizes, memory }: Growth, freeBytes: number): readonly number[] {
  return sizes.filter((size) => (memory?.(size) ?? 0) <= freeBytes / 2);
}
