import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { atEnd, temporaryFolder } from '../support/cleanup.js';
import { ROOT } from '../support/sources.js';

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const SAMPLES = Object.keys(scripts).filter((name) => /^sample\b/.test(name));

/** Takes a moment to end, as an application does, and says so with its exit code. */
const APP = `import { setTimeout } from 'node:timers/promises';
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.on(signal, async () => { await setTimeout(100); console.log('ended by ' + signal); process.exit(5); });
  setInterval(() => {}, 1000);
  console.log(process.env.REDIS_URL);`;

/** `npm run` of a script as it stands in package.json, without its builds and with an application of ours. */
async function run(name: string) {
  const folder = temporaryFolder();
  const script = scripts[name]!.replaceAll(/npm run [\w:-]+/g, 'true')
    .replace('tools/redis.mjs', `"${join(ROOT, 'tools/redis.mjs')}"`)
    .replace(/node sample\/\S+$/, 'node app.mjs');
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts: { [name]: script } }));
  writeFileSync(join(folder, 'app.mjs'), APP);
  const npm = spawn('npm', ['run', '--silent', name], {
    cwd: folder,
    // A process group, as a terminal makes one of what is typed.
    detached: true,
    env: { ...process.env, REDIS_URL: '', npm_config_update_notifier: 'false' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  atEnd(() => killGroup(npm.pid!));
  const closed = once(npm, 'close') as Promise<[number | null]>;
  const lines: string[] = [];
  const isUp = new Promise<void>((resolve) => {
    createInterface({ input: npm.stdout }).on('line', (line) => {
      lines.push(line);
      resolve();
    });
  });
  await isUp;
  return { pid: npm.pid!, lines, closed };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function isThere(url: string): Promise<boolean> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => {});
  return client
    .connect()
    .then(
      () => true,
      () => false,
    )
    .finally(() => client.disconnect());
}

it.each([
  ...SAMPLES.map((name) => [name, 'SIGTERM', 'npm alone'] as const),
  ['sample', 'SIGINT', 'npm alone'],
  ['sample', 'SIGINT', 'the process group'],
] as const)('npm run %s, %s to %s: it ends after the application and its Redis', async (...given) => {
  const [name, signal, whom] = given;
  const { pid, lines, closed } = await run(name);
  const url = lines[0]!;
  expect(await isThere(url)).toBe(true);
  process.kill(whom === 'npm alone' ? pid : -pid, signal);
  expect((await closed)[0]).toBe(5);
  expect(lines).toContain(`ended by ${signal}`);
  expect(await isThere(url)).toBe(false);
});
