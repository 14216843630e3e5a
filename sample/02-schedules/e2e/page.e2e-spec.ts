import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type Opened, useBrowser } from '../../../test/support/browser.js';
import { useRedis } from '../../../test/support/redis.js';
import { startSample, type Sample } from './support/sample.js';

const redis = useRedis();
const openPage = useBrowser();

test('it shows every schedule with its next run, and runs as they come', { timeout: 60_000 }, async () => {
  const sample = await startSample(redis);
  const { page, faults } = await open(sample);
  expect(await page.locator('.schedule strong').allTextContents()).toEqual([
    'ask-suppliers',
    'fetch-rates',
    'import-stock',
    'report-berlin',
    'report-new-york',
  ]);
  await row(page, 'ask-suppliers')
    .getByText(/^(in \d\.\d s|now)$/)
    .waitFor();
  await row(page, 'report-new-york')
    .getByText(/07:00(:00)? in New York$/)
    .waitFor();
  await row(page, 'ask-suppliers')
    .getByText(/^ran at/)
    .waitFor();
  const runs = page.locator('.run', { hasText: 'ask-suppliers' });
  await runs.locator('[data-state=completed]').first().waitFor();
  await runs.nth(1).waitFor();
  // A reload knows what has been.
  await page.reload();
  await runs.nth(1).waitFor();
  expect(faults).toEqual([]);
});

test('one is run by hand', async () => {
  const sample = await startSample(redis);
  const { page, faults } = await open(sample);
  await row(page, 'report-berlin').getByText('no run yet').waitFor();
  await row(page, 'report-berlin').getByRole('button', { name: 'Run now' }).click();
  await row(page, 'report-berlin')
    .getByText(/^running since/)
    .waitFor();
  await row(page, 'report-berlin')
    .getByText(/^ran at .*, took 2\.\d s$/)
    .waitFor();
  await page
    .locator('.run', { hasText: 'report-berlin' })
    .getByText(/^run by hand · took/)
    .waitFor();
  expect(faults).toEqual([]);
});

test('one is paused and resumed', async () => {
  const sample = await startSample(redis);
  const { page, faults } = await open(sample);
  await row(page, 'ask-suppliers').getByRole('button', { name: 'Pause' }).click();
  await row(page, 'ask-suppliers').getByText('until resumed').waitFor();
  expect(await sample.show('ask-suppliers')).toMatchObject({ paused: true });
  await row(page, 'ask-suppliers').getByRole('button', { name: 'Resume' }).click();
  await row(page, 'ask-suppliers').getByRole('button', { name: 'Pause' }).waitFor();
  expect(await sample.show('ask-suppliers')).toMatchObject({ paused: false });
  expect(faults).toEqual([]);
});

test('what comes from outside stays text, and one made elsewhere appears', async () => {
  const hostile = '<img src=x onerror="document.title=1">';
  const sample = await startSample(redis);
  const { page, faults } = await open(sample);
  await sample.chores.schedules.upsert(
    hostile,
    { every: '1h' },
    { name: 'report', data: { office: 'Berlin' } },
  );
  await sample.chores.schedules.runNow(hostile);
  await page.locator('.schedule strong', { hasText: hostile }).waitFor();
  await page.locator('.run .of', { hasText: hostile }).waitFor();
  expect(await page.locator('.list img').count()).toBe(0);
  expect(await page.title()).toBe('Schedules');
  // One that is removed goes as well.
  await sample.chores.schedules.remove(hostile);
  await page.locator('.schedule strong', { hasText: hostile }).waitFor({ state: 'detached' });
  expect(faults).toEqual([]);
});

test('a refusal is told on the page', async () => {
  const sample = await startSample(redis);
  const { page } = await open(sample);
  // The page does not hear yet that it has gone.
  const list = await sample.list();
  await page.route('**/schedules', (route) => route.fulfill({ json: list }));
  await sample.chores.schedules.remove('report-berlin');
  await row(page, 'report-berlin').getByRole('button', { name: 'Run now' }).click();
  await page
    .getByRole('alert')
    .getByText(/^Refused with 404: .*report-berlin/)
    .waitFor();
  await page.unrouteAll({ behavior: 'wait' });
  await row(page, 'report-berlin').waitFor({ state: 'detached' });
  expect(await page.locator('.schedule').count()).toBe(4);
});

test('a lost connection is shown, and what happened meanwhile is made up for', async () => {
  const sample = await startSample(redis);
  const { page } = await open(sample);
  sample.cutConnections();
  await page.getByRole('status').getByText('Reconnecting').waitFor();
  const { id } = await sample.chores.schedules.runNow('report-berlin');
  await page.getByRole('status').getByText('Live').waitFor();
  await page.locator(`.run[data-id='${id}']`).waitFor();
  expect(await page.locator(`.run[data-id='${id}'] .of`).textContent()).toBe('report-berlin');
});

test('it fits a narrow phone', async () => {
  const sample = await startSample(redis);
  const long = 'a-schedule-with-a-name-that-does-not-end'.repeat(4);
  await sample.chores.schedules.upsert(long, { every: '1h' }, { name: 'report', data: { office: 'Berlin' } });
  await sample.chores.schedules.runNow(long);
  const { page } = await open(sample, 320);
  await page.locator('.run .of', { hasText: long }).waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBe(320);
});

/** The page, once it is live, with everything that its console says is wrong. */
async function open(sample: Sample, width = 1_100): Promise<Opened> {
  const opened = await openPage(sample.url, { viewport: { width, height: 800 }, locale: 'en-GB' });
  const { page } = opened;
  page.setDefaultTimeout(15_000);
  await page.getByRole('status').getByText('Live').waitFor();
  await page.locator('.schedule').nth(4).waitFor();
  return opened;
}

function row(page: Page, id: string) {
  return page.locator(`.schedule[data-id='${id}']`);
}
