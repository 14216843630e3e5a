// Finds Chromium for the tests of pages, and installs it if it has the rights:
//   node tools/chromium.mjs       prints its path
import { spawnSync } from 'node:child_process';
import { MissingProgramError, aptInstall, findOnPath, isMain } from './programs.mjs';

const NAMES = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

export async function findChromium() {
  const named = process.env.CHROME_PATH;
  if (named) {
    if (runs(named)) return named;
    throw new MissingProgramError(`CHROME_PATH names ${named}, which cannot be run`);
  }
  const found = search() ?? (aptInstall('Chromium', ['chromium']) ? search() : undefined);
  if (found) return found;
  throw new MissingProgramError(
    [
      'No Chromium or Chrome was found on PATH, and it could not be installed.',
      'Get one in one of these ways, then try again:',
      '  apt:   sudo apt-get update && sudo apt-get install chromium',
      '  brew:  brew install --cask google-chrome',
      '  other: export CHROME_PATH=/path/to/a/chromium',
    ].join('\n'),
  );
}

function search() {
  return NAMES.map(findOnPath).find((path) => path !== undefined && runs(path));
}

/** Ubuntu's `chromium-browser` may be a script that only asks to install a snap. */
function runs(path) {
  return spawnSync(path, ['--version'], { stdio: 'ignore', timeout: 20_000 }).status === 0;
}

if (isMain(import.meta)) {
  try {
    console.log(await findChromium());
  } catch (error) {
    console.error(error instanceof MissingProgramError ? error.message : error);
    process.exitCode = 1;
  }
}
