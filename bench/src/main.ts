import { Redis } from 'ioredis';
import { startRedis } from '../../tools/redis.mjs';
import { check } from './check/check.js';
import { contenders } from './contenders/index.js';
import { CONTROL_NAME } from './measure/connections.js';
import { HELP, readOptions, type Request } from './options.js';
import { render } from './report/text.js';
import { rowsOf, save, type Result } from './report/result.js';
import { surroundings } from './report/surroundings.js';
import { runCommand } from './run/command.js';
import { Progress } from './run/progress.js';
import { runTurns, turns } from './run/runner.js';

await runCommand({ read: readOptions, help: HELP, run: bench });

/** The exit code: 1 when some measurement or proof failed. */
async function bench(plan: Request, signal: AbortSignal): Promise<number> {
  const chosen = await Promise.all(plan.contenders.map((name) => contenders[name]!()));
  if (plan.check) return (await check(chosen, signal)) ? 0 : 1;
  const startedAt = new Date().toISOString();
  // The suite empties the server between measurements, so nobody else may use it.
  const redis = await startRedis({ private: true });
  try {
    const where = await describe(
      redis.url,
      chosen.flatMap((c) => c.packages),
    );
    const all = turns(plan, chosen);
    const progress = new Progress(all.length);
    const samples = await runTurns(all, plan.jobs, redis.url, progress, signal);
    progress.end();
    const result: Result = {
      startedAt,
      jobs: plan.jobs,
      rounds: plan.rounds,
      surroundings: where,
      terms: Object.fromEntries(chosen.map((c) => [c.name, c.terms])),
      rows: rowsOf(plan.scenarios, chosen, samples, plan.jobs),
      samples,
    };
    process.stdout.write(`${render(result)}\n`);
    process.stderr.write(`written to ${save(result)}\n`);
    return samples.some((s) => s.error !== undefined) ? 1 : 0;
  } finally {
    await redis.stop();
  }
}

async function describe(url: string, packages: readonly string[]) {
  const control = new Redis(url, { connectionName: CONTROL_NAME });
  try {
    return await surroundings(control, packages);
  } finally {
    control.disconnect();
  }
}
