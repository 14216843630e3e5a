// Takes the picture of the README: the page of the sample after "Send one of each".
//   npm run build && npm run build:sample && node tools/screenshot.mjs
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { findChromium } from './chromium.mjs';
import { freePort } from './free-port.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE = join(ROOT, 'docs/images/sample.png');
const WIDTH = 1000;

const port = await freePort();
const sample = spawn(process.execPath, [join(ROOT, 'sample/01-webhooks/dist/main.js')], {
  env: { ...process.env, PORT: String(port), REDIS_URL: 'memory' },
  stdio: 'ignore',
});
try {
  const browser = await chromium.launch({
    executablePath: await findChromium(),
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 900 }, locale: 'en-GB' });
  await open(page, `http://127.0.0.1:${port}`);
  await page.getByRole('button', { name: 'Send one of each' }).click();
  const retried = page.locator('.delivery[data-state=completed]', { hasText: 'invoice.created' });
  await retried.locator('summary').click({ timeout: 60_000 });
  mkdirSync(dirname(FILE), { recursive: true });
  await page.screenshot({ path: FILE, fullPage: true });
  await browser.close();
  process.stdout.write(`${FILE}\n`);
} finally {
  sample.kill('SIGTERM');
}

/** The sample needs a moment before it listens. */
async function open(page, url) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await page.goto(url);
      return;
    } catch (error) {
      if (attempt === 60) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}
