import { expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const open = useBrowser();

it('an address of no page shows that, with the links to the other pages', async () => {
  const { url, ask } = await bootDashboard(redis);
  const { page } = await open('about:blank');
  for (const path of ['nonsense', 'dead/more', 'queues/work/more', 'queues/work/jobs/1/more']) {
    const answer = await page.goto(url + path);
    expect([path, answer?.status()]).toEqual([path, 404]);
    await page.getByText('There is no such page.').waitFor();
  }
  await page.getByRole('link', { name: 'Workers' }).click();
  await page.getByRole('heading', { name: 'Workers' }).waitFor();
  // A program gets the error as JSON.
  expect(JSON.parse((await ask('GET', '/nonsense')).text).error.code).toBe('NOT_FOUND');
});

it('an address of no queue shows that in one sentence, with a link to the queues', async () => {
  const { url } = await bootDashboard(redis);
  const { page } = await open('about:blank');
  for (const path of ['queues/nope', 'queues/nope/jobs?state=dead', 'queues/nope/jobs/1']) {
    await page.goto(url + path);
    const empty = page.locator('.empty');
    await empty.waitFor();
    expect([path, await empty.innerText()]).toEqual([
      path,
      expect.stringMatching(/^This dashboard has no queue 'nope'\.\s+All queues$/),
    ]);
  }
  expect(await page.getByRole('search').count()).toBe(0);
  await page.getByRole('link', { name: 'All queues' }).click();
  await page.getByRole('link', { name: 'work', exact: true }).waitFor();
});

it('a slash at the end of an address leads to the page', async () => {
  const { url } = await bootDashboard(redis);
  const { page, faults } = await open(`${url}dead/`);
  await page.getByRole('heading', { name: 'Dead jobs' }).waitFor();
  expect(page.url()).toBe(`${url}dead`);
  await page.goto(`${url}queues/work/jobs/?state=dead`);
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  expect(page.url()).toBe(`${url}queues/work/jobs?state=dead`);
  expect(faults).toEqual([]);
});

it('j and Enter open the dead jobs of a row, not their queue', async () => {
  const bad = () => {
    throw new UnrecoverableError('no stock');
  };
  const { url, queue } = await bootDashboard(redis, { handlers: { bad } });
  await queue.add('bad', null, { id: 'b-1' });
  await until(async () => (await queue.counts()).dead === 1, PATIENT);
  const { page, faults } = await open(`${url}dead`);
  await page.getByRole('link', { name: 'bad' }).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'b-1' }).waitFor();
  expect(new URL(page.url()).searchParams.get('name')).toBe('bad');
  expect(faults).toEqual([]);
});
