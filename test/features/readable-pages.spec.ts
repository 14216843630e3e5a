import { describe, expect, it } from 'vitest';
import type { OverviewView } from '#lib/subpaths/dashboard/views.js';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { gated } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const open = useBrowser();

describe('the pages show', () => {
  it('which queue or job a tab is about, and that a job is missing', async () => {
    const dashboard = await bootDashboard(redis);
    await dashboard.queue.pause();
    await dashboard.queue.add('pay', 1, { id: 'pay-7' });
    const { page, faults } = await open(dashboard.url);
    for (const [path, title] of [
      ['queues', 'Queues · Queues'],
      ['queues/work', 'work · Queues'],
      ['queues/work/jobs', 'Jobs of work · Queues'],
      ['queues/work/jobs/pay-7', 'pay pay-7 · work · Queues'],
      ['queues/work/jobs/nobody', 'nobody · work · Queues'],
    ] as const) {
      await page.goto(`${dashboard.url}${path}`);
      await expect.poll(() => page.title()).toBe(title);
    }
    const empty = page.locator('.empty');
    expect(await empty.locator('p').textContent()).toBe(
      'Queue work has no job nobody. Completed jobs are kept only with the option retention.',
    );
    await page.getByRole('link', { name: 'Dead' }).click();
    await expect.poll(() => page.title()).toBe('Dead · Queues');
    expect(faults.filter((fault) => !/404/.test(fault))).toEqual([]);
  });

  it('which jobs an act is about, and settings of Redis', async () => {
    const dashboard = await bootDashboard(redis, { handlers: { die: gated().handlers['die']! } });
    const { queue } = dashboard;
    await queue.add('die', 1, { attempts: 1 });
    await until(async () => (await queue.counts()).dead === 1, PATIENT);
    const filter = { state: 'dead', name: 'die', newerThan: '1h' };
    const started = await dashboard.api('POST', 'queues/work/bulk', { kind: 'remove', filter });
    expect(started.status).toBe(200);
    await queue.as('ada').limits.set({ concurrency: 3 });
    const { page, faults } = await open(`${dashboard.url}actions`);
    const words = 'dead jobs with name die, age under 1 h';
    await page.getByRole('rowheader', { name: `Remove ${words}` }).waitFor();
    await page.getByRole('cell', { name: words, exact: true }).waitFor();
    await page.getByRole('cell', { name: 'concurrency 3', exact: true }).waitFor();
    await page.goto(`${dashboard.url}redis`);
    const fact = page.locator('dl > div').filter({ hasText: 'uptime_in_seconds' }).locator('dd');
    expect(await fact.textContent()).toMatch(/^\d+(\.\d)?\s(s|ms|min|h|d)\b/);
    expect(faults).toEqual([]);
  });

  it('for how long a job runs, and that it was asked to stop', async () => {
    const { gate, handlers } = gated();
    const dashboard = await bootDashboard(redis, { handlers: { active: handlers['active']! } });
    const { queue } = dashboard;
    await queue.add('active', 1, { id: 'a' });
    await until(async () => (await queue.get('a'))?.state === 'active', PATIENT);
    const { page, faults } = await open(`${dashboard.url}queues/work/jobs/a`);
    await page
      .locator('.timeline li')
      .filter({ hasText: /for \d.* so far/ })
      .waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await page.getByText('It was asked to stop').waitFor();
    gate.open();
    await page.getByText('It was asked to stop').waitFor({ state: 'detached' });
    expect(faults.filter((fault) => !/404/.test(fault))).toEqual([]);
  });
});

it('the columns of the running jobs of all processes are below each other', async () => {
  const { gate, handlers } = gated();
  const dashboard = await bootDashboard(redis, { handlers: { active: handlers['active']! } });
  await dashboard.queue.add('active', 1, { id: 'a' });
  await until(async () => (await dashboard.queue.counts()).active === 1, PATIENT);
  const { page, faults } = await open(dashboard.url);
  await page.route('**/api/v1/workers', async (route) => {
    const view: any = await (await route.fetch()).json();
    const [worker] = view.workers;
    const [job] = worker.pools[0].jobs;
    const other = { ...job, name: 'transcode-a-long-film', id: 'x'.repeat(60), queue: 'media', attempt: 12 };
    const pools = [{ ...worker.pools[0], jobs: [other] }];
    await route.fulfill({ json: { ...view, workers: [worker, { ...worker, id: 'w2', pid: 1, pools }] } });
  });
  await until(async () => (await dashboard.api('GET', 'workers')).body.workers[0]?.pools[0].jobs[0], PATIENT);
  await page.goto(`${dashboard.url}workers`);
  await page.getByRole('region').nth(1).waitFor();
  const columns = await page
    .locator('table')
    .evaluateAll((tables) =>
      tables.map((table) =>
        [...table.querySelectorAll('thead th')].map((th) => Math.round(th.getBoundingClientRect().left)),
      ),
    );
  expect(columns).toHaveLength(2);
  expect(columns[0]).toEqual(columns[1]);
  gate.open();
  expect(faults).toEqual([]);
});

it('many events do not make a formatter of times each', async () => {
  const dashboard = await bootDashboard(redis);
  const { page } = await open('about:blank');
  await page.addInitScript(() => {
    let made = 0;
    const { DateTimeFormat } = Intl;
    const Counted = function (...args: ConstructorParameters<typeof DateTimeFormat>) {
      made += 1;
      return new DateTimeFormat(...args);
    };
    Object.assign(Intl, { DateTimeFormat: Counted });
    Object.assign(window, { made: () => made });
  });
  await page.goto(`${dashboard.url}live`);
  await page.getByText('Nothing has happened yet.').waitFor();
  await dashboard.queue.addBulk(Array.from({ length: 100 }, (_, at) => ({ name: `job-${at}`, data: at })));
  await page.getByRole('cell', { name: 'job-99', exact: true }).waitFor();
  expect(await page.evaluate(() => (window as unknown as { made: () => number }).made())).toBeLessThan(10);
});

it('a thousand queues are 300 rows, those with jobs first, and all on demand', async () => {
  const dashboard = await bootDashboard(redis);
  await dashboard.queue.pause();
  await dashboard.queue.add('x', 1);
  const { page, faults } = await open(`${dashboard.url}redis`);
  await page.route('**/api/v1/overview', async (route) => {
    const response = await route.fetch();
    const view = (await response.json()) as OverviewView;
    const counts = { waiting: 0, active: 0, delayed: 0, completed: 0, dead: 0, cancelled: 0 };
    const [work] = view.queues;
    const idle = Array.from({ length: 999 }, (_, i) => ({ ...work!, name: `idle.${i}`, counts }));
    await route.fulfill({ response, json: { ...view, queues: [...idle, work] } });
  });
  await page.goto(`${dashboard.url}queues`);
  const rows = page.locator('tbody tr[data-row]');
  await page.getByText('700 queues not shown; those with jobs come first.').waitFor();
  expect(await rows.count()).toBe(300);
  await page.getByRole('rowheader', { name: 'work' }).waitFor();
  await page.getByText('idle.* 999 queues').waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  await expect.poll(() => rows.count()).toBe(1_000);
  expect(faults).toEqual([]);
});

it('a button that is pressed twice while the network is slow acts once', async () => {
  const dashboard = await bootDashboard(redis);
  await dashboard.queue.schedules.upsert('daily', { cron: '0 7 * * *' }, { name: 'a' });
  const { page, faults } = await open(`${dashboard.url}schedules`);
  let release = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  let calls = 0;
  await page.route('**/schedules/daily/run', async (route) => {
    calls += 1;
    await gate;
    await route.continue();
  });
  const button = page.getByRole('button', { name: 'Run now' });
  await button.click();
  await button.click();
  expect(await button.getAttribute('aria-busy')).toBe('true');
  release();
  await page.getByText('Its job is added.').waitFor();
  await expect.poll(() => button.getAttribute('aria-busy')).toBe(null);
  expect(calls).toBe(1);
  await button.click();
  await expect.poll(() => calls).toBe(2);
  expect(faults).toEqual([]);
});

it('words from right to left stay within their field', async () => {
  const dashboard = await bootDashboard(redis);
  await dashboard.queue.pause();
  await dashboard.queue.add(
    '\u05e9\u05dc\u05d5\u05dd',
    { '\u05de\u05e4\u05ea\u05d7': '\u05e2\u05e8\u05da' },
    { id: 'a' },
  );
  const { page } = await open(`${dashboard.url}queues/work/jobs/a`);
  const leaf = page.locator('.leaf');
  const [key, value] = [await leaf.locator('.key').boundingBox(), await leaf.locator('.text').boundingBox()];
  expect(key!.x + key!.width).toBeLessThanOrEqual(value!.x + 1);
});

it('names and ids of nothing but blanks can be seen and opened', async () => {
  const { queue, url } = await bootDashboard(redis);
  await queue.pause();
  const ids = [' ', '\u200b', '\u3000\u200f', 'a\ufeffb'];
  for (const id of ids) await queue.add(id, 1, { id });
  const { page, faults } = await open(`${url}queues/work/jobs`);
  const links = page.locator('td.id a');
  await links.nth(3).waitFor();
  expect(await links.allTextContents()).toEqual([' ', '\\u200b', '\\u3000\\u200f', 'a\\ufeffb']);
  for (const [at, id] of ids.entries()) {
    await links.nth(at).click();
    await page.getByRole('button', { name: 'Copy id' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/queues/queues/work/jobs/${encodeURIComponent(id)}`);
    await page.goBack();
  }
  expect(faults).toEqual([]);
});
