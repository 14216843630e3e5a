import { Redis } from 'ioredis';
import type { Contender } from '../contender.js';
import { CONTROL_NAME } from '../measure/connections.js';
import { jobsOf, suits, type Scenario } from '../scenario.js';
import type { Progress } from './progress.js';
import { spawnOrder } from './spawn.js';
import type { Turn } from './turn.js';
import { wipe } from './wipe.js';

export interface Plan {
  readonly scenarios: readonly Scenario[];
  readonly contenders: readonly string[];
  readonly rounds: number;
  readonly jobs: number;
}

/** One measurement of one contender in one round; `error` in place of figures where it failed. */
export interface Sample {
  readonly scenario: string;
  readonly contender: string;
  readonly round: number;
  readonly figures?: Record<string, number>;
  readonly error?: string;
}

/** Contenders take turns within each round (A B A B), so that a drift of the machine affects all of them alike. */
export async function runTurns(
  all: readonly Turn[],
  jobs: number,
  url: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<readonly Sample[]> {
  const control = new Redis(url, { connectionName: CONTROL_NAME });
  const samples: Sample[] = [];
  try {
    for (const turn of all) {
      signal.throwIfAborted();
      progress.begin(turn);
      await wipe(control);
      samples.push({ ...name(turn), ...(await take(turn, jobs, url, progress, signal)) });
    }
  } finally {
    control.disconnect();
  }
  return samples;
}

export function turns({ scenarios, rounds }: Plan, contenders: readonly Contender[]): Turn[] {
  return scenarios.flatMap((scenario) =>
    Array.from({ length: rounds }, (_, i) => i + 1).flatMap((round) =>
      contenders
        .filter((contender) => suits(scenario, contender))
        .map(({ name: contender }) => ({ scenario, contender, round })),
    ),
  );
}

async function take(
  { scenario, contender }: Turn,
  jobs: number,
  url: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<Pick<Sample, 'figures' | 'error'>> {
  const order = { contender, scenario: scenario.name, url, jobs: jobsOf(scenario, jobs) };
  try {
    if (scenario.prepare) {
      await spawnOrder({ ...order, phase: 'prepare' }, (share) => progress.step('filling', share), signal);
    }
    const figures = await spawnOrder(
      { ...order, phase: 'measure' },
      (share) => progress.step('measuring', share),
      signal,
    );
    return { figures };
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    progress.failed(message);
    return { error: message };
  }
}

function name({ scenario, contender, round }: Turn): Pick<Sample, 'scenario' | 'contender' | 'round'> {
  return { scenario: scenario.name, contender, round };
}
