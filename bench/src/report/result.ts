import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Contender } from '../contender.js';
import { summarize, type Summary } from '../measure/stats.js';
import type { Sample } from '../run/runner.js';
import { jobsOf, suits, type Figure, type Scenario } from '../scenario.js';
import type { Surroundings } from './surroundings.js';

/** A whole run, in the form of `bench/results/`. */
export interface Result {
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  /** What `--jobs` asked for; each row says how many there were. */
  readonly jobs: number;
  readonly rounds: number;
  readonly surroundings: Surroundings;
  /** The terms of each contender. */
  readonly terms: Record<string, readonly string[]>;
  readonly rows: readonly Row[];
  /** Every single measurement. */
  readonly samples: readonly Sample[];
}

/** One figure of one scenario for all contenders. */
export interface Row extends Figure {
  readonly scenario: string;
  readonly scenarioTitle: string;
  /** How many jobs were measured, without those of a warm-up. */
  readonly jobs: number;
  /** The contenders that were measured, if not all. */
  readonly only?: readonly string[];
  /** Missing if every round of a contender failed. */
  readonly contenders: Record<string, Summary>;
  /** The first contender's median divided by the other's. */
  readonly ratios: Record<string, number>;
}

export function rowsOf(
  scenarios: readonly Scenario[],
  contenders: readonly Contender[],
  samples: readonly Sample[],
  asked: number,
): Row[] {
  const names = contenders.map(({ name }) => name);
  return scenarios.flatMap((scenario) =>
    scenario.figures.map((figure) => {
      const summaries: Record<string, Summary> = {};
      for (const contender of names) {
        const values = samples
          .filter((s) => s.scenario === scenario.name && s.contender === contender)
          .flatMap((s) => s.figures?.[figure.key] ?? []);
        if (values.length > 0) summaries[contender] = summarize(values);
      }
      return {
        scenario: scenario.name,
        scenarioTitle: scenario.title,
        jobs: jobsOf(scenario, asked),
        ...figure,
        ...(scenario.needs && {
          only: contenders.filter((one) => suits(scenario, one)).map(({ name }) => name),
        }),
        contenders: summaries,
        ratios: ratiosOf(names, summaries),
      };
    }),
  );
}

function ratiosOf(
  [first, ...others]: readonly string[],
  summaries: Record<string, Summary>,
): Record<string, number> {
  const ratios: Record<string, number> = {};
  for (const other of others) {
    const mine = summaries[first!]?.median;
    const theirs = summaries[other]?.median;
    if (mine !== undefined && theirs !== undefined && theirs !== 0) ratios[other] = mine / theirs;
  }
  return ratios;
}

/** Writes the result and returns its path. The name of the file begins with `prefix`. */
export function save(result: Result, prefix = ''): string {
  const folder = fileURLToPath(new URL('../../results/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${prefix}${result.startedAt.slice(0, 19).replaceAll(':', '-')}.json`);
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
  return file;
}
