import { afterEach, describe, expect, it, vi } from 'vitest';
import { useRedis } from '../support/redis.js';
import { forkedPlanOf, planOf } from './plan.js';
import { EXPIRING, soak, type SoakOptions } from './soak.js';

const redis = useRedis({ leaves: EXPIRING });
const runs = Number(process.env['SOAK_RUNS'] ?? 3);
const first = Number(process.env['SOAK_SEED'] ?? 1);
const seeds = Array.from({ length: runs }, (_, i) => first + i);

/** Ends the connections of the applications to Redis. */
async function cut(): Promise<void> {
  for (const { id } of await redis.clients()) await redis.admin.client('KILL', 'ID', Number(id!));
}

async function faultsOf(seed: number, options: SoakOptions = {}) {
  const { faults, jobs, starts } = await soak(
    redis,
    options.isForked ? forkedPlanOf(seed) : planOf(seed),
    options,
  );
  console.log([`seed ${seed}: ${jobs} jobs, ${starts} runs, ${faults.length} faults`, ...faults].join('\n'));
  return faults;
}

describe('whole applications with random options, jobs and acts', () => {
  afterEach(() => vi.unstubAllEnvs());
  // Each wait has a shorter limit, and its error names what it waited for.
  vi.setConfig({ testTimeout: 240_000 });

  it.each(seeds)('end every job once and pass no limit, seed %i', async (seed) => {
    expect(await faultsOf(seed)).toEqual([]);
  });

  it.each(seeds)('do so while their connections are cut, seed %i', async (seed) => {
    expect(await faultsOf(seed, { cut })).toEqual([]);
  });

  // Processes take long to start.
  it.each(seeds.slice(0, Math.max(1, runs >> 1)))(
    'do so while their processes are killed, seed %i',
    async (seed) => {
      expect(await faultsOf(seed, { isForked: true })).toEqual([]);
    },
  );

  it.each(seeds)('do so in memory, seed %i', async (seed) => {
    vi.stubEnv('GODWIT_ENGINE', 'memory');
    expect(await faultsOf(seed)).toEqual([]);
  });
});
