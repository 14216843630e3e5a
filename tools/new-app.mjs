// Tests the packed library in an application as `nest new` of Nest 11 creates it (tools/new-app:
// configuration unchanged, without the packages for lint): Jest, each module resolution of TypeScript 5.7,
// and bundlers.
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { startRedis } from './redis.mjs';
import { ROOT } from './support-matrix.mjs';

const NAME = 'nest new of Nest 11';
const BY_TIMER = 'leases are renewed by a timer';

/** Packages that Nest loads if they are installed. */
const OPTIONAL = [
  '@nestjs/microservices',
  '@nestjs/microservices/*',
  '@nestjs/websockets/*',
  'class-transformer',
  'class-validator',
];

const RESOLUTIONS = [
  { module: 'commonjs', moduleResolution: 'node10', files: ['ts'] },
  { module: 'node16', moduleResolution: 'node16', files: ['ts', 'mts'] },
  { module: 'nodenext', moduleResolution: 'nodenext', files: ['ts', 'mts'] },
  { module: 'esnext', moduleResolution: 'bundler', files: ['ts', 'mts'] },
];

/** `check` counts and prints; `run` runs a program. */
export async function checkNewApp(temp, tarball, { check, run }) {
  const app = join(temp, 'new-app');
  cpSync(join(ROOT, 'tools/new-app'), app, { recursive: true });
  const npx = (...args) => run(app, 'npx', ['--no-install', ...args]);

  if (
    !(await check(`${NAME}: installs`, () =>
      run(app, 'npm', ['install', '--no-audit', '--no-fund', tarball]),
    ))
  )
    return;
  await check(`${NAME}: its first spec passes in Jest`, () => npx('jest'));
  const flags = '--noEmit --strict --skipLibCheck --experimentalDecorators --target es2022'.split(' ');
  for (const { module, moduleResolution, files } of RESOLUTIONS) {
    const options = [...flags, '--module', module, '--moduleResolution', moduleResolution];
    await check(`${NAME}: TypeScript 5.7 resolves every subpath with ${module} and ${moduleResolution}`, () =>
      npx('tsc', ...options, ...files.map((ending) => `test/subpaths.${ending}`)),
    );
  }
  await check(`${NAME}: runs bundled by nest build --webpack`, async () => {
    await npx('nest', 'build', '--webpack');
    expectOnly(join(app, 'dist'), ['main.js']);
    await runMain(run, join(app, 'dist'), 'main.js', 0);
  });
  if (!(await check(`${NAME}: runs built by nest build`, () => buildAndRun(app, npx, run)))) return;

  // The bundles are in separate folders, from which no package can be resolved.
  const externals = OPTIONAL.map((name) => `--external:${name}`);
  const bundle = (folder, ...args) => {
    const options = ['--bundle', '--platform=node', '--log-level=error', `--outdir=${join(temp, folder)}`];
    return npx('esbuild', 'dist/main.js', ...options, ...externals, ...args);
  };
  await check(
    `${NAME}: runs bundled by esbuild into one file, and says once that it has no thread`,
    async () => {
      await bundle('one-file');
      expectOnly(join(temp, 'one-file'), ['main.js']);
      await runMain(run, join(temp, 'one-file'), 'main.js', 1);
    },
  );
  await check(`${NAME}: has its heartbeat thread if esbuild bundles that too`, async () => {
    await bundle('two-files', 'godwit/heartbeat-thread', '--entry-names=[name]');
    expectOnly(join(temp, 'two-files'), ['heartbeat-thread.js', 'main.js']);
    await runMain(run, join(temp, 'two-files'), 'main.js', 0);
  });
  await check(`${NAME}: runs bundled by esbuild into one ES module`, async () => {
    const require =
      "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
    await bundle('es-module', '--format=esm', '--out-extension:.js=.mjs', `--banner:js=${require}`);
    await runMain(run, join(temp, 'es-module'), 'main.mjs', 1);
  });
}

async function buildAndRun(app, npx, run) {
  await npx('nest', 'build');
  await runMain(run, join(app, 'dist'), 'main.js', 0);
}

function expectOnly(folder, expected) {
  const files = readdirSync(folder).filter((name) => name.endsWith('js'));
  if (files.toString() !== expected.toString()) throw new Error(`${folder} has [${files.join(', ')}]`);
}

/** Runs the bundle until it exits. `warnings`: how many times it must log that a timer renews the leases. */
async function runMain(run, folder, file, warnings) {
  const redis = await startRedis({ private: true });
  try {
    const output = await run(folder, process.execPath, [file], {
      env: { REDIS_URL: redis.url, NO_COLOR: '1' },
      timeout: 60_000,
    });
    if (!output.includes('the job answered: hello Ada')) throw new Error(`its output:\n${output}`);
    const found = output.split(BY_TIMER).length - 1;
    if (found !== warnings)
      throw new Error(`${found} warnings that ${BY_TIMER}, not ${warnings}:\n${output}`);
  } finally {
    await redis.stop();
  }
}
