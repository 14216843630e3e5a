import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { findChromium } from '../../tools/chromium.mjs';
import { atEnd } from './cleanup.js';

// Chromium as root needs the first flag. The others stop its own requests.
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface Opened {
  readonly page: Page;
  /** Errors and warnings in the page, dialogs, and requests to other origins. */
  readonly faults: string[];
}

/** Starts a browser for the specs of this file. Returns how to open a page, which is closed after its test. */
export function useBrowser(): (url: string, options?: BrowserContextOptions) => Promise<Opened> {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: await findChromium(), args: FLAGS });
  });
  afterAll(() => browser.close());
  return async (url, options) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    atEnd(() => context.close());
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) faults.push(message.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(new URL(url).origin)) faults.push(request.url());
    });
    page.on('dialog', (dialog) => faults.push(`a dialog of the browser: ${dialog.message()}`));
    await page.goto(url);
    return { page, faults };
  };
}
