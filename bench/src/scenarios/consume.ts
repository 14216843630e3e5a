import { consuming } from '../measure/consuming.js';
import type { Scenario } from '../scenario.js';

export const consume = consumeAt('consume', 100, (asked) => asked);
export const consume10 = consumeAt('consume-10', 10, (asked) => Math.ceil(asked / 2));
export const consume1 = consumeAt('consume-1', 1, (asked) => Math.ceil(asked / 10));

function consumeAt(name: string, concurrency: number, jobs: Scenario['jobs']): Scenario {
  const title = `consume, no-op handler, concurrency ${concurrency}, one process`;
  return consuming({ name, title, jobs }, { concurrency });
}
