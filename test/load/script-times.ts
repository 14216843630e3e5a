import { Redis } from 'ioredis';
import type { QueueLimits } from '#lib/contract/engine.js';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import { allScripts } from '#lib/engine/script.js';
import { enqueueBegin, enqueueEnd } from '#lib/engine/scripts/adds.js';
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

/**
 * Shorter calls are not logged. Nearly all commands inside of scripts are shorter, and logging them would take longer
 * than they do.
 */
export const LEAST_US = 20;

/** The outcome of a job that has completed. */
export function completedRun(id: string): SettledRun {
  return { id, name: 'job', attempt: 1, durationUs: 1, outcome: { kind: 'completed' } };
}

/** A Redis of its own with an engine. The calls of all scripts are measured. */
export async function startLoad(prefix: string, limitMs: number, limits = LOAD_LIMITS) {
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
  return { admin, engine, times: new ScriptTimes(admin, limitMs), stop };
}

/** What Redis needs for each call of a script, by its own clock (SLOWLOG), as a table on the terminal. */
class ScriptTimes {
  /** Whether the p99 of a script was above the limit. */
  isSlow = false;

  constructor(
    private readonly admin: Redis,
    private readonly limitMs: number,
  ) {}

  head(): void {
    console.log(`${'ms in Redis'.padEnd(56)} ${'script'.padEnd(13)}  calls      p50      p99      max`);
  }

  /** Of the calls that `run` makes and that take at least `LEAST_US`. Throws if there were none. */
  async measured(what: string, run: () => Promise<unknown>): Promise<void> {
    const { admin } = this;
    await admin.config('SET', 'slowlog-log-slower-than', LEAST_US);
    await admin.call('SLOWLOG', 'RESET');
    await run();
    await admin.config('SET', 'slowlog-log-slower-than', -1);
    // The newest entry is the first.
    const entries = (await admin.call('SLOWLOG', 'GET', -1)) as [number, number, number, string[]][];
    const times = timesIn(entries.toReversed().map(([, , us, command]) => ({ us, command })));
    if (times.size === 0) throw new Error(`"${what}" has called no script, so nothing was measured`);
    for (const [name, all] of times) this.tell(what, name, all);
  }

  private tell(what: string, name: string, all: number[]): void {
    all.sort((a, b) => a - b);
    const at = (part: number) => all[Math.min(all.length - 1, Math.floor(all.length * part))]!;
    if (at(0.99) > this.limitMs) this.isSlow = true;
    const figures = [at(0.5), at(0.99), at(1)].map((ms) => ms.toFixed(2).padStart(8)).join(' ');
    console.log(`${what.padEnd(56)} ${name.padEnd(13)} ${String(all.length).padStart(6)} ${figures}`);
  }
}

const TRANSACTION = 'transaction';

interface LogEntry {
  readonly us: number;
  readonly command: readonly string[];
}

/** In ms, by the name of the script. */
function timesIn(entries: readonly LogEntry[]): ReadonlyMap<string, number[]> {
  const names = new Map<string | undefined, string>();
  for (const { name, sha, text } of allScripts()) names.set(sha, name).set(inLog(text), name);
  const times = new Map<string, number[]>();
  const put = (name: string, ms: number) => times.set(name, [...(times.get(name) ?? []), ms]);
  for (const entry of entries) {
    const ms = entry.us / 1_000;
    const [verb, script] = entry.command;
    const name = /^eval(sha)?$/i.test(verb!) ? names.get(script) : undefined;
    // An add of many jobs is a transaction: HSET and RPUSH between two scripts.
    const transactions = times.get(TRANSACTION);
    if (name === enqueueBegin.name) put(TRANSACTION, ms);
    else if (transactions && (name === enqueueEnd.name || /^(hset|rpush)$/.test(verb!)))
      transactions[transactions.length - 1]! += ms;
    else if (name) put(name, ms);
  }
  return times;
}

/** SLOWLOG shows the first 128 characters of an argument. */
function inLog(text: string): string {
  return text.length > 128 ? `${text.slice(0, 128)}... (${text.length - 128} more bytes)` : text;
}
