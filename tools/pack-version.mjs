// Packs the built library without types and source maps. Later versions are tested together with it
// (test/versions):
//   npm run build && node tools/pack-version.mjs
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TARGET = join(ROOT, 'test/versions');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

const folder = mkdtempSync(join(ROOT, '.tmp-version-'));
try {
  const filter = (/** @type {string} */ path) => !/\.(d\.ts|map|tsbuildinfo)$/.test(path);
  cpSync(join(ROOT, 'dist'), join(folder, 'package/dist'), { recursive: true, filter });
  cpSync(join(ROOT, 'package.json'), join(folder, 'package/package.json'));
  for (const file of readdirSync(TARGET)) if (file.endsWith('.tgz')) rmSync(join(TARGET, file));
  const tarball = join(TARGET, `godwit-${version}.tgz`);
  const { status } = spawnSync('tar', ['-czf', tarball, '-C', folder, 'package'], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
  else console.log(tarball);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
