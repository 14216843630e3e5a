import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import type { Redis } from 'ioredis';
import { parseInfo } from '../measure/redis-info.js';

/** The machine and the versions of a run. */
export interface Surroundings {
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryGiB: number;
    readonly system: string;
    /** One-minute load average before the first measurement; far from 0, other programs were busy. */
    readonly loadBefore: number;
  };
  readonly node: string;
  readonly redis: { readonly version: string; readonly settings: Record<string, string> };
  readonly packages: Record<string, string>;
  readonly commit: string;
}

const SETTINGS = ['save', 'appendonly', 'maxmemory-policy', 'io-threads'];

export async function surroundings(control: Redis, packages: Iterable<string>): Promise<Surroundings> {
  const server = parseInfo(await control.info('server'));
  const settings: Record<string, string> = {};
  for (const name of SETTINGS) settings[name] = (await control.config('GET', name))[1] ?? '';
  return {
    machine: {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      system: `${platform()} ${release()} ${arch()}`,
      loadBefore: loadavg()[0]!,
    },
    node: process.version,
    redis: { version: server.get('valkey_version') ?? server.get('redis_version') ?? 'unknown', settings },
    packages: Object.fromEntries([...new Set(packages)].toSorted().map((name) => [name, versionOf(name)])),
    commit: commit(),
  };
}

/** Reads the file instead of resolving the module, since few packages export their package.json. */
function versionOf(name: string): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    for (const file of [join(folder, 'node_modules', name, 'package.json'), join(folder, 'package.json')]) {
      if (!existsSync(file)) continue;
      const manifest = JSON.parse(readFileSync(file, 'utf8')) as { name?: string; version?: string };
      if (manifest.name === name && manifest.version !== undefined) return manifest.version;
    }
  }
  return 'unknown';
}

function commit(): string {
  try {
    return (
      git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with local changes')
    );
  } catch {
    return 'unknown';
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
