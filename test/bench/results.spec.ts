import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { godwit } from '../../bench/src/contenders/godwit.js';
import { CONTROL_NAME } from '../../bench/src/measure/connections.js';
import type { Lab } from '../../bench/src/scenario.js';
import { results } from '../../bench/src/scenarios/results.js';
import { useServer } from '../support/server.js';
import { MemoryContender } from './memory-contender.js';

// The measurement empties its server, and wants to be alone with it.
const server = useServer();
let control: Redis;
beforeAll(async () => {
  control = new Redis(server.url, { connectionName: CONTROL_NAME });
  // Connected before the first test, or that test would seem to have opened it.
  await control.ping();
});
afterAll(() => control.disconnect());

function labOf(contender: Lab['contender']): Lab {
  return { contender, url: server.url, jobs: 100, control, progress: () => {} };
}

it('memory of results is what Redis grows by where they are kept', async () => {
  await results.prepare!(labOf(godwit));
  const { bytes, perSecond } = await results.measure(labOf(godwit));
  expect(perSecond).toBeGreaterThan(0);
  // Data of about 60 bytes, a result of 20, and their places.
  expect(bytes).toBeGreaterThan(80);
  expect(bytes).toBeLessThan(2_000);
});

it('fails where no result is kept', async () => {
  const lab = labOf(new MemoryContender());
  await results.prepare!(lab);
  await expect(results.measure(lab)).rejects.toThrow('less than its result is long');
});
