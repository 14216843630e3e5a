import { Redis } from 'ioredis';
import { startProxy } from '../beside/start.js';
import { now } from '../measure/clock.js';
import { CONTROL_NAME } from '../measure/connections.js';
import { quantile } from '../measure/stats.js';
import { jobsOf, type Lab, type Scenario } from '../scenario.js';
import { addBulk } from './add-bulk.js';
import { addInFlight } from './add-in-flight.js';
import { addOne } from './add-one.js';
import { consume } from './consume.js';

const DELAY_MS = 0.5;
const PINGS = 200;

export const networkAddOne = overNetwork(addOne, 1 / 5);

/** Each with the part of its jobs that takes seconds and not minutes at one call a millisecond. */
export const network: readonly Scenario[] = [
  overNetwork(consume, 1),
  overNetwork(addBulk, 1),
  overNetwork(addInFlight, 1 / 2),
  networkAddOne,
];

/**
 * The same scenario with a network between the contender and Redis; the suite itself connects to the server directly.
 */
function overNetwork(scenario: Scenario, part: number): Scenario {
  const { name, title, figures } = scenario;
  return {
    ...scenario,
    name: `network-${name}`,
    title: `${DELAY_MS} ms of network each way: ${title}`,
    figures: [
      ...figures,
      { key: 'ping', title: 'round trip of a PING, p50', unit: 'ms', better: 'less' },
      { key: 'proxy', title: 'share of a core that the proxy takes meanwhile', unit: '%', better: 'less' },
    ],
    jobs: (asked) => Math.ceil(jobsOf(scenario, asked) * part),
    measure: (lab) => measureThrough(scenario, lab),
  };
}

async function measureThrough(scenario: Scenario, lab: Lab): Promise<Record<string, number>> {
  const proxy = await startProxy();
  const { hostname: host, port } = new URL(lab.url);
  const url = `redis://127.0.0.1:${await proxy.ask('open', { host, port: Number(port), delayMs: DELAY_MS })}`;
  const ping = await pingThrough(url);

  const cpuBefore = await proxy.ask('cpuUs');
  const before = now();
  const measured = await scenario.measure({ ...lab, url });
  const cpuUs = (await proxy.ask('cpuUs')) - cpuBefore;
  const elapsedUs = (now() - before) * 1_000;

  await proxy.ask('close');
  await proxy.end();
  return { ...measured, ping, proxy: (cpuUs / elapsedUs) * 100 };
}

async function pingThrough(url: string): Promise<number> {
  const client = new Redis(url, { connectionName: CONTROL_NAME });
  const took: number[] = [];
  try {
    for (let i = 0; i < PINGS; i++) {
      const before = now();
      await client.ping();
      took.push(now() - before);
    }
  } finally {
    client.disconnect();
  }
  return quantile(took, 0.5);
}
