import { Redis } from 'ioredis';
import { contenders } from '../contenders/index.js';
import { growthScenario } from '../growth/index.js';
import { CONTROL_NAME } from '../measure/connections.js';
import type { Lab, Scenario } from '../scenario.js';
import { scenarios } from '../scenarios/index.js';
import type { Message, Order } from './order.js';

// Only the runner reads the figures. A child without it would keep the machine busy.
process.on('disconnect', () => process.exit(1));

const order = JSON.parse(process.argv[2]!) as Order;
const figures = await execute(order);
await say({ kind: 'figures', figures });
// A contender that leaves a handle open would keep the process from ending.
process.exit(0);

async function execute({
  contender,
  scenario: name,
  phase,
  url,
  jobs,
}: Order): Promise<Record<string, number>> {
  const scenario = scenarios.find((s) => s.name === name) ?? growthScenario(name);
  const control = new Redis(url, { connectionName: CONTROL_NAME });
  const lab: Lab = {
    contender: await contenders[contender]!(),
    url,
    jobs,
    control,
    progress: (done, total) => void say({ kind: 'progress', done, total }),
  };
  try {
    if (phase === 'measure') return complete(scenario, await scenario.measure(lab));
    await scenario.prepare?.(lab);
    return {};
  } finally {
    control.disconnect();
  }
}

/** A figure that is missing or not a number would leave a hole in the table that looks like a result. */
function complete(scenario: Scenario, measured: Record<string, number>): Record<string, number> {
  for (const { key } of scenario.figures) {
    if (!Number.isFinite(measured[key]))
      throw new Error(`${scenario.name}: figure '${key}' is ${measured[key]}`);
  }
  return measured;
}

function say(message: Message): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send!(message, (error: Error | null) => (error ? reject(error) : resolve()));
  });
}
