import { Redis } from 'ioredis';
import type { QueueLimits } from '#lib/contract/engine.js';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import type { SettledRun } from '#lib/job/outcome.js';
import { startRedis } from '../../tools/redis.mjs';

/** Limits of the queues that are measured. */
export const LOAD_LIMITS: QueueLimits = {
  leaseMs: 30_000,
  logsMax: 100,
  maxEvents: 10_000,
  deadMax: 10_000,
  deadAgeMs: 90 * 86_400_000,
  eventsAgeMs: null,
  eventsMaxBytes: 67_108_864,
  progressMaxBytes: 67_108_864,
  deadMaxBytes: 1_073_741_824,
  completedMax: 100_000,
};

/** The outcome of a job that has completed. */
export function completedRun(id: string): SettledRun {
  return { id, name: 'job', attempt: 1, durationUs: 1, outcome: { kind: 'completed' } };
}

/** A Redis of its own with an engine. The calls of these scripts are measured. */
export async function startLoad(
  prefix: string,
  scripts: readonly { readonly name: string; readonly sha: string }[],
  limitMs: number,
  limits = LOAD_LIMITS,
) {
  const server = await startRedis({ private: true, args: ['--slowlog-max-len', '1000000'] });
  const admin = new Redis(server.url);
  const engine = new RedisEngine({
    connection: server.url,
    prefix,
    callMs: 60_000,
    limitsOf: () => limits,
  });
  const stop = async () => {
    await engine.close();
    admin.disconnect();
    await server.stop();
  };
  return { admin, engine, times: new ScriptTimes(admin, limitMs, scripts), stop };
}

/** What Redis needs for each call of a script, by its own clock (SLOWLOG), as a table on the terminal. */
class ScriptTimes {
  /** Whether the p99 of a script was above the limit. */
  isSlow = false;
  private readonly names: ReadonlyMap<string | undefined, string>;

  constructor(
    private readonly admin: Redis,
    private readonly limitMs: number,
    scripts: readonly { readonly name: string; readonly sha: string }[],
  ) {
    this.names = new Map(scripts.map(({ name, sha }) => [sha, name]));
  }

  head(): void {
    console.log(`${'ms in Redis'.padEnd(56)} ${'script'.padEnd(10)}  calls      p50      p99      max`);
  }

  /** Of the calls that `run` makes. */
  async measured(what: string, run: () => Promise<unknown>): Promise<void> {
    const { admin } = this;
    await admin.config('SET', 'slowlog-log-slower-than', 0);
    await admin.call('SLOWLOG', 'RESET');
    await run();
    await admin.config('SET', 'slowlog-log-slower-than', -1);
    const entries = (await admin.call('SLOWLOG', 'GET', -1)) as [number, number, number, string[]][];
    const times = new Map<string, number[]>();
    for (const [, , us, [command, sha]] of entries) {
      const name = /^evalsha$/i.test(command!) && this.names.get(sha);
      if (name) times.set(name, [...(times.get(name) ?? []), us / 1_000]);
    }
    for (const [name, all] of times) this.tell(what, name, all);
  }

  private tell(what: string, name: string, all: number[]): void {
    all.sort((a, b) => a - b);
    const at = (part: number) => all[Math.min(all.length - 1, Math.floor(all.length * part))]!;
    if (at(0.99) > this.limitMs) this.isSlow = true;
    const figures = [at(0.5), at(0.99), at(1)].map((ms) => ms.toFixed(2).padStart(8)).join(' ');
    console.log(`${what.padEnd(56)} ${name.padEnd(10)} ${String(all.length).padStart(6)} ${figures}`);
  }
}
