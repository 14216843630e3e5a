import { appendFileSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { startRedis, type RunningRedis } from '../../tools/redis.mjs';
import { sequences, sequencesOfLimits } from '../model/commands.js';
import { Rig } from '../model/rig.js';
import { Scene } from '../model/scene.js';
import { FLOW_CONTROL, mutantOf, type Mutant } from './mutants.js';
import { within } from '../support/wait.js';

// One share of the mutants that the specs have left, against the model, each until a sequence fails. Writes a line for each to a
// file.
const { MUTATION_SHARD = '0/1', MUTATION_OUT = '/dev/stdout', MUTATION_IDS = '' } = process.env;
const [shard, shards] = MUTATION_SHARD.split('/').map(Number) as [number, number];

const SEQUENCES = 100;
const COMMANDS = 40;
const SEED = 4242;
/** A mutant may go round in circles: that is found too. */
const ONE_MS = 60_000;

/** The run that caught it, or null. `none` is tried with limits and without. */
async function play(url: string, mutant: Mutant): Promise<string | null> {
  if (mutant.file in FLOW_CONTROL) return playWith(url, mutant, sequencesOfLimits);
  const killedBy = await playWith(url, mutant, sequences);
  return mutant.id === 'none' ? (killedBy ?? playWith(url, mutant, sequencesOfLimits)) : killedBy;
}

async function playWith(url: string, mutant: Mutant, chosen: typeof sequences): Promise<string | null> {
  const rig = await Rig.open(url, { patch: mutant.patch, callMs: 5_000 });
  try {
    const property = fc.asyncProperty(chosen(COMMANDS), async (commands) => {
      const setup = async () => ({ model: await Scene.open(rig), real: rig });
      await within(fc.asyncModelRun(setup, commands), { timeout: ONE_MS });
    });
    const limits = { numRuns: SEQUENCES, seed: SEED, endOnFailure: true };
    const { failed, numRuns } = await fc.check(property, limits);
    return failed ? `model, sequence ${numRuns}` : null;
  } finally {
    await within(rig.close()).catch(() => undefined);
  }
}

/** A script that does not end keeps its server: then the next mutant gets another one. */
async function tryOne(redis: RunningRedis, mutant: Mutant): Promise<string | null> {
  const began = performance.now();
  const outcome = await play(redis.url, mutant).catch(
    (error: Error) => `model, ${error.message.split('\n')[0]}`,
  );
  if (performance.now() - began > ONE_MS / 3) {
    await redis.kill9();
    await redis.restart();
  }
  return outcome;
}

it('tries its share of the mutants', { timeout: 0 }, async () => {
  const ids = readFileSync(MUTATION_IDS, 'utf8').split('\n').filter(Boolean);
  const mine = ids.filter((_, i) => i % shards === shard).map(mutantOf);
  const redis = await startRedis({ private: true });
  for (const mutant of mine) {
    const killedBy = await tryOne(redis, mutant);
    appendFileSync(MUTATION_OUT, `${JSON.stringify({ id: mutant.id, killedBy })}\n`);
  }
  expect(mine.every(({ file }) => file !== '')).toBe(true);
  await redis.stop();
});
