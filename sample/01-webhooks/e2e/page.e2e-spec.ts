import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type Opened, useBrowser } from '../../../test/support/browser.js';
import { useRedis } from '../../../test/support/redis.js';
import { startSample, startTarget, type Sample } from './support/sample.js';

const redis = useRedis();
const openPage = useBrowser();

test('one of each: a retry, a delivered and a dead row appear live, and a reload shows them again', async () => {
  const sample = await startSample(redis);
  const { page, faults } = await open(sample);
  await page.getByText('Nothing has been sent yet.').waitFor();

  await page.getByRole('button', { name: 'Send one of each' }).click();
  await row(page, 'invoice.created', 'delayed').waitFor();
  await page
    .getByText(/^retry in \d/)
    .first()
    .waitFor();
  await row(page, 'order.paid', 'completed').waitFor();
  await row(page, 'invoice.created', 'completed').waitFor();
  await row(page, 'user.deleted', 'dead').waitFor();
  await row(page, 'stock.low', 'dead').waitFor();
  await page.locator('#counts [data-state=dead] dd', { hasText: '2' }).waitFor();

  const before = await timeline(page, 'invoice.created');
  expect(before.map((text) => text.replace(/\d\d:\d\d.*/, ''))).toEqual([
    'Attempt 1 of 5500 Internal Server Error: not yet',
    'Attempt 2 of 5500 Internal Server Error: not yet',
    'Attempt 3 of 5delivered',
  ]);
  await page.reload();
  await row(page, 'invoice.created', 'completed').waitFor();
  await row(page, 'user.deleted', 'dead').waitFor();
  expect(await timeline(page, 'invoice.created')).toEqual(before);
  expect(await page.locator('.delivery').count()).toBe(7);

  await page.getByRole('button', { name: /^Gone/ }).click();
  await page.locator('#counts [data-state=dead] dd', { hasText: '3' }).waitFor();
  expect(faults).toEqual([]);
});

test('a dead delivery is tried again at the press of a button', async () => {
  let healed = false;
  const target = await startTarget((response) => response.writeHead(healed ? 200 : 410).end());
  const sample = await startSample(redis, [target.host]);
  const { page, faults } = await open(sample);
  await sample.send(target.url);
  await row(page, 'order.paid', 'dead').locator('summary').click();
  await page.getByText('the answer says that another attempt cannot help').waitFor();

  healed = true;
  await page.getByRole('button', { name: 'Try again' }).click();
  await row(page, 'order.paid', 'completed').waitFor();
  await page.getByText('asked for by a person').waitFor();
  expect(await page.locator('.timeline li').count()).toBe(2);
  expect(faults).toEqual([]);
});

test('what comes from outside stays text', async () => {
  const hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
  const target = await startTarget((response) => response.writeHead(410).end(hostile));
  const sample = await startSample(redis, [target.host]);
  const { page, faults } = await open(sample);
  await page.getByText('Send your own').click();
  await page.getByLabel('URL').fill(`${target.url}?${hostile}`);
  await page.getByLabel('Body, as JSON').fill(JSON.stringify({ [hostile]: hostile }));
  await page.getByRole('button', { name: 'Send', exact: true }).click();

  await row(page, 'order.paid', 'dead').locator('summary').click();
  await page.locator('.said', { hasText: `410 Gone: ${hostile}` }).waitFor();
  expect(await page.locator('pre').textContent()).toBe(JSON.stringify({ [hostile]: hostile }, null, 2));
  expect(await page.locator('#deliveries img, #deliveries script').count()).toBe(0);
  expect(await page.title()).toBe('Webhooks');
  expect(faults).toEqual([]);
});

test('a refusal is told on the page', async () => {
  const sample = await startSample(redis);
  const { page } = await open(sample);
  await page.getByRole('button', { name: /^Forbidden/ }).click();
  await page.getByText('Refused with 400: 169.254.169.254 does not lead to a public address').waitFor();
  expect(await page.getByText('Nothing has been sent yet.').isVisible()).toBe(true);
});

test('a lost connection is shown, and what happened meanwhile is made up for', async () => {
  const target = await startTarget((response) => response.end());
  const sample = await startSample(redis, [target.host]);
  const { page } = await open(sample);
  await sample.send(target.url);
  await row(page, 'order.paid', 'completed').waitFor();

  sample.cutConnections();
  await page.getByRole('status').getByText('Reconnecting').waitFor();
  const id = await sample.send(target.url);
  await sample.event(id, 'completed');
  await page.getByRole('status').getByText('Live').waitFor();
  await page.locator(`.delivery[data-id='${id}'][data-state=completed]`).waitFor();
  expect(await page.locator('.delivery').count()).toBe(2);
  expect(await timeline(page, 'order.paid')).toHaveLength(2);
});

test('it fits a narrow phone', async () => {
  const target = await startTarget((response) => response.writeHead(410).end('x'.repeat(500)));
  const sample = await startSample(redis, [target.host]);
  const { page } = await open(sample, 320);
  const wide = { url: `${target.url}${'path/'.repeat(60)}`, event: 'e'.repeat(100), body: 'b'.repeat(500) };
  expect((await sample.post('/webhooks', wide)).status).toBe(202);
  await page.locator('.delivery summary').click();
  await page.locator('pre').waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBe(320);
});

/** The page, once it is live, with everything that its console says is wrong. */
async function open(sample: Sample, width = 1_100): Promise<Opened> {
  const opened = await openPage(sample.url, { viewport: { width, height: 800 }, locale: 'en-GB' });
  const { page } = opened;
  page.setDefaultTimeout(15_000);
  await page.getByRole('status').getByText('Live').waitFor();
  await page.locator('[data-example]').first().waitFor();
  return opened;
}

function row(page: Page, event: string, state: string) {
  return page.locator(`.delivery[data-state=${state}]`, { has: page.locator('.event', { hasText: event }) });
}

function timeline(page: Page, event: string): Promise<string[]> {
  return page
    .locator('.delivery', { has: page.locator('.event', { hasText: event }) })
    .locator('.timeline li')
    .allTextContents();
}
