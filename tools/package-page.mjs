// The page of the package on a registry shows README.md without the rest of the repository, so relative links
// and pictures are made absolute when the package is packed. The addresses are those of package.json:
// `repository.url`, and `documentation` for pages under docs/ if they are published elsewhere.
//   node tools/package-page.mjs             rewrites README.md; npm runs it before it packs
//   node tools/package-page.mjs --restore   puts it back; npm runs it after it has packed
//   node tools/package-page.mjs --check     fails if an address is missing; npm runs it before it publishes
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMain } from './programs.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PAGE = join(ROOT, 'README.md');
const COPY = join(ROOT, '.tmp/README.before-packing.md');
const PICTURE = /\.(png|svg|gif|jpe?g|webp)$/;

/**
 * @typedef {object} Package
 * @property {string} version
 * @property {{ url: string }} repository
 * @property {string} homepage
 * @property {string} documentation
 */

/** The addresses that an owner must fill in before the package can be published. @param {Package} manifest */
export function missingAddresses({ repository, homepage }) {
  return Object.entries({ 'repository.url': repository.url, homepage })
    .filter(([, address]) => !/^(git\+)?https:\/\/\S+$/.test(address))
    .map(([name]) => name);
}

/**
 * Returns the page with absolute links, or unchanged if the repository has no address yet.
 *
 * @param {string} page
 * @param {Package} manifest
 */
export function packagePage(page, { version, repository, documentation }) {
  const base = repository.url.replace(/^git\+/, '').replace(/(\.git)?\/?$/, '');
  if (base === '') return page;
  /** @param {string} target */
  const absolute = (target) => {
    if (/^([a-z]+:|#)/.test(target)) return target;
    // GitHub serves an SVG as a picture only with the parameter that sanitizes it.
    if (PICTURE.test(target))
      return `${base}/raw/v${version}/${target}${target.endsWith('.svg') ? '?sanitize=true' : ''}`;
    if (documentation !== '' && target.startsWith('docs/'))
      return `${documentation.replace(/\/$/, '')}/${target.slice('docs/'.length)}`;
    return `${base}/blob/v${version}/${target}`;
  };
  return page
    .replaceAll(/\]\(([^)\s]+)\)/g, (_, target) => `](${absolute(target)})`)
    .replaceAll(/\b(src|srcset|href)="([^"]+)"/g, (_, name, target) => `${name}="${absolute(target)}"`);
}

if (isMain(import.meta)) {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const [flag] = process.argv.slice(2);
  if (flag === '--check') {
    const missing = missingAddresses(manifest);
    if (missing.length > 0) {
      process.stderr.write(
        `package.json has no https address for ${missing.join(' and ')}: fill it in before publishing\n`,
      );
      process.exitCode = 1;
    }
  } else if (flag === '--restore') {
    if (existsSync(COPY)) renameSync(COPY, PAGE);
  } else {
    // If the last run was interrupted, the copy is the page as written by hand.
    if (existsSync(COPY)) renameSync(COPY, PAGE);
    const page = readFileSync(PAGE, 'utf8');
    const packed = packagePage(page, manifest);
    if (packed !== page) {
      mkdirSync(dirname(COPY), { recursive: true });
      copyFileSync(PAGE, COPY);
      writeFileSync(PAGE, packed);
    }
  }
}
