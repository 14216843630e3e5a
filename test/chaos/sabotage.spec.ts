import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ConnectionOption } from '#lib/index.js';
import type { Verdict } from '../history/check.js';
import { patchedClient } from '../support/patched-client.js';
import { startCut } from '../support/cut.js';
import { useRedis } from '../support/redis.js';
import { scriptPatch } from './broken.js';
import { SABOTAGES } from './mix/sabotage.js';
import { shortRun } from './mix/short-run.js';

/*
 * Runs mixed features for a second and checks the history. The checker must report nothing for the real engine. For an engine that
 * breaks a promise, it must report that promise. Otherwise a run of chaos without a report would prove nothing.
 */
const redis = useRedis({ leaves: ['active', 'worker', 'workers'] });

const CALLS = 500;
const LEASE_MS = 400;

describe('a second of mixed features', () => {
  it('breaks no promise', async () => {
    const connections = [redis.url];
    const verdict = await shortRun({
      connections,
      prefix: redis.prefix,
      seed: 1,
      calls: 600,
      leaseMs: 1_000,
    });
    expect(verdict.findings).toEqual([]);
    expect(verdict.runs).toBeGreaterThan(50);
  });

  it('breaks none if a worker loses its lease and continues', async () => {
    const verdict = await withSilence((url) => url, 3);
    expect(verdict.findings).toEqual([]);
  });
});

describe('an engine that', () => {
  it.each(Object.entries(SABOTAGES))(
    '%s is detected',
    async (_, { breaks, afterMs = 0, runs = 1, mutate }) => {
      const run = (seed: number) =>
        shortRun({
          connections: [redis.url],
          prefix: redis.prefix,
          seed,
          calls: CALLS,
          meanwhile: () => pause(afterMs),
          drainMs: 2_500,
          leaseMs: 1_000,
          sabotage: mutate,
        });
      expect(await foundIn(runs, run, breaks)).toContain(breaks);
    },
  );

  it('settles for a worker that has lost its lease is detected', async () => {
    const connect = (url: string) => patchedClient(url, { patch: scriptPatch('no-fencing') });
    // The silence meets running jobs only by chance.
    const found = await foundIn(12, (seed) => withSilence(connect, seed), 'settled once');
    expect(found).toContain('settled once');
  });
});

/** The broken promises of as many runs, until one of them has broken this one. */
async function foundIn(
  runs: number,
  run: (seed: number) => Promise<Verdict>,
  promise: string,
): Promise<string[]> {
  const found: string[] = [];
  for (let seed = 2; seed < 2 + runs && !found.includes(promise); seed++) {
    const { findings } = await run(seed);
    found.push(...findings.map((finding) => finding.promise));
    await redis.flush();
  }
  return found;
}

/** Two processes work; the connections of one go silent for longer than its lease, and come back with all that they held. */
async function withSilence(connect: (url: string) => ConnectionOption, seed: number) {
  const cut = await startCut(redis.url);
  return shortRun({
    connections: [connect(cut.url), connect(redis.url)],
    prefix: redis.prefix,
    seed,
    calls: 1_000,
    leaseMs: LEASE_MS,
    meanwhile: async () => {
      await pause(300);
      cut.refuse();
      cut.blackhole();
      await pause(3 * LEASE_MS);
      await cut.heal();
    },
  });
}
