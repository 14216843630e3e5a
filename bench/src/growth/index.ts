import type { Scenario } from '../scenario.js';
import { scenarioAt, type Growth } from './growth.js';
import { payload } from './payload.js';
import { queues } from './queues.js';
import { waiting } from './waiting.js';
import { workers } from './workers.js';

/** In the order of the report. */
export const growths: readonly Growth[] = [waiting, queues, workers, payload];

/** The scenario of one size by the name that `scenarioAt` gave it. */
export function growthScenario(name: string): Scenario {
  const [growth, size] = name.split('@');
  return scenarioAt(
    growths.find((one) => one.name === growth)!,
    Number(size),
  );
}
