import { freemem } from 'node:os';
import type { Contender } from '../contender.js';
import { contenders } from '../contenders/index.js';
import { CONTROL_NAME } from '../measure/connections.js';
import { rowsOf, save } from '../report/result.js';
import { surroundings, type Surroundings } from '../report/surroundings.js';
import { runCommand } from '../run/command.js';
import { Progress } from '../run/progress.js';
import { runTurns, type Sample } from '../run/runner.js';
import { startRedis } from '../../../tools/redis.mjs';
import { Redis } from 'ioredis';
import { roundOf, scenarioAt, sizesThatFit, type Growth } from './growth.js';
import { HELP, readOptions, type GrowthPlan } from './options.js';
import { curvesOf, type GrowthResult } from './result.js';
import { renderGrowth } from './text.js';

await runCommand({ read: readOptions, help: HELP, run: grow });

/** The exit code: 1 when some measurement failed. */
async function grow(plan: GrowthPlan, signal: AbortSignal): Promise<number> {
  const chosen = await Promise.all(plan.contenders.map((name) => contenders[name]!()));
  const redis = await startRedis({ private: true });
  let code = 0;
  try {
    const control = new Redis(redis.url, { connectionName: CONTROL_NAME });
    const where = await surroundings(
      control,
      chosen.flatMap((c) => c.packages),
    ).finally(() => control.disconnect());
    for (const growth of plan.growths) {
      const { result, sizes } = await measure(growth, chosen, { plan, url: redis.url, where, signal });
      process.stdout.write(`${renderGrowth(result, sizes)}\n\n`);
      process.stderr.write(`written to ${save(result, `growth-${growth.name}-`)}\n`);
      if (result.samples.some((s) => s.error !== undefined)) code = 1;
    }
  } finally {
    await redis.stop();
  }
  return code;
}

interface Run {
  readonly plan: GrowthPlan;
  readonly url: string;
  readonly where: Surroundings;
  readonly signal: AbortSignal;
}

async function measure(
  growth: Growth,
  chosen: readonly Contender[],
  run: Run,
): Promise<{ result: GrowthResult; sizes: readonly number[] }> {
  const { plan, where } = run;
  const startedAt = new Date().toISOString();
  const asked = growth.sizes.filter((size) => size <= plan.upTo);
  const sizes = sizesThatFit({ ...growth, sizes: asked }, freemem());
  for (const size of asked.filter((one) => !sizes.includes(one))) {
    process.stderr.write(
      `${growth.name}: ${size.toLocaleString('en')} is left out, Redis might need ${gib(growth.memory!(size))} of the ${gib(freemem())} that are free\n`,
    );
  }
  const { samples, rounds } = await takeRounds(growth, sizes, chosen, run);
  const { name, title, axis, notes } = growth;
  const result: GrowthResult = {
    startedAt,
    jobs: plan.jobs,
    rounds,
    surroundings: where,
    terms: Object.fromEntries(chosen.map((c) => [c.name, c.terms])),
    growth: { name, title, axis, notes },
    curves: curvesOf(growth, sizes, chosen, samples),
    rows: rowsOf(
      sizes.map((size) => scenarioAt(growth, size)),
      chosen,
      samples,
      plan.jobs,
    ),
    samples,
  };
  return { result, sizes };
}

/** Runs at least one round, and further ones that end in time, judged by the longest so far. */
async function takeRounds(
  growth: Growth,
  sizes: readonly number[],
  chosen: readonly Contender[],
  { plan, url, signal }: Run,
) {
  const samples: Sample[] = [];
  const progress = new Progress(roundOf(growth, sizes, chosen, 1).length * plan.rounds);
  const endsAt = performance.now() + plan.minutes * 60_000;
  let longest = 0;
  let rounds = 0;
  while (rounds < plan.rounds && (rounds === 0 || performance.now() + longest <= endsAt)) {
    const beganAt = performance.now();
    rounds += 1;
    samples.push(
      ...(await runTurns(roundOf(growth, sizes, chosen, rounds), plan.jobs, url, progress, signal)),
    );
    longest = Math.max(longest, performance.now() - beganAt);
  }
  progress.end();
  if (rounds < plan.rounds)
    process.stderr.write(
      `${growth.name}: ${rounds} of ${plan.rounds} rounds, another would not end within ${plan.minutes} min\n`,
    );
  return { samples, rounds };
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
