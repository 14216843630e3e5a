import type { Contender } from '../contender.js';
import { suits, type Figure, type Scenario } from '../scenario.js';
import type { Turn } from '../run/turn.js';

/** The same measurement at several sizes of one thing, each size a scenario of its own. */
export interface Growth {
  /** What `--only` takes. */
  readonly name: string;
  readonly title: string;
  /** What grows. */
  readonly axis: Axis;
  readonly sizes: readonly number[];
  /** Peers are not measured at larger ones, which would take them too long. @default all sizes */
  readonly peersUpTo?: number;
  readonly figures: readonly Figure[];
  /** Which figures may not get worse by more than the share `worse` up to a size. */
  readonly promise?: { readonly figures: readonly string[]; readonly upTo: number; readonly worse: number };
  /** What must be known to read the figures. */
  readonly notes: readonly string[];
  /** Memory that Redis needs at this size, in bytes, for the hungriest contender measured there. @default next to nothing */
  readonly memory?: (size: number) => number;
  at(size: number): Pick<Scenario, 'jobs' | 'prepare' | 'measure'>;
}

export interface Axis {
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

/** One round: from the smallest size to the largest, so that a drift of the machine shows between rounds and not as growth. */
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

/** Those for which half of the free memory is enough: the rest is for the processes, and for a Redis that copies a table. */
export function sizesThatFit({ sizes, memory }: Growth, freeBytes: number): readonly number[] {
  return sizes.filter((size) => (memory?.(size) ?? 0) <= freeBytes / 2);
}
