import { expect, it } from 'vitest';
import { godwit } from '../../bench/src/contenders/godwit.js';
import { results } from '../../bench/src/scenarios/results.js';
import { useLab } from './companions.js';
import { MemoryContender } from './memory-contender.js';

const labOf = useLab();

const JOBS = 100;

it('memory of results is by how much Redis grows if results are kept', async () => {
  await results.prepare!(labOf(godwit, JOBS));
  const { bytes, perSecond } = await results.measure(labOf(godwit, JOBS));
  expect(perSecond).toBeGreaterThan(0);
  // Data of about 60 bytes, a result of 20, and their places.
  expect(bytes).toBeGreaterThan(80);
  expect(bytes).toBeLessThan(2_000);
});

it('fails if no result is kept', async () => {
  const lab = labOf(new MemoryContender(), JOBS);
  await results.prepare!(lab);
  await expect(results.measure(lab)).rejects.toThrow('less than its result is long');
});
