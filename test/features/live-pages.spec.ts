import { describe, expect, it } from 'vitest';
import { EVENT_TYPES } from '#lib/index.js';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const open = useBrowser();

async function onDashboard() {
  const dashboard = await bootDashboard(redis);
  const { page, faults } = await open(dashboard.url);
  return { dashboard, queue: dashboard.queue, page, faults };
}

describe('the live events', () => {
  it('have no count of events that are not shown after they are cleared', async () => {
    const { page, dashboard } = await onDashboard();
    const batch = {
      events: [{ queue: 'work', type: 'added', at: 1, jobId: 'one', name: 'a', note: '' }],
      skipped: 7,
    };
    const body = `id: work:1\ndata: ${JSON.stringify(batch)}\n\n`;
    await page.route(
      '**/api/v1/events*',
      (route) => route.fulfill({ contentType: 'text/event-stream', body }),
      {
        times: 1,
      },
    );
    await page.goto(`${dashboard.url}live`);
    const more = page.getByText('7 further events are not shown');
    await more.waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByRole('link', { name: 'one' }).waitFor({ state: 'detached' });
    expect(await more.count()).toBe(0);
  });

  it('are out of date while Redis is away', async () => {
    const { page, dashboard } = await onDashboard();
    await page.route(/api\/v1\/(?!events|me)/, (route) =>
      route.fulfill({ status: 503, json: { error: { code: 'GODWIT_REDIS_UNAVAILABLE', message: 'away' } } }),
    );
    await page.goto(`${dashboard.url}live`);
    await page.getByRole('alert').waitFor();
    await page.getByRole('heading', { name: 'Live lost' }).waitFor();
    expect(await page.locator('.badge.good').count()).toBe(0);
    expect(await page.getByRole('alert').innerText()).toMatch(
      /^The data is out of date\. The server cannot reach Redis\. No data since .*\d\d:\d\d\. This page goes on by itself\./,
    );
  });

  it('are lost if the stream is silent, or says that no events arrive', async () => {
    const { page, dashboard } = await onDashboard();
    await page.clock.install();
    const streams: string[] = [];
    const body = 'retry: 100000000\n\nevent: status\ndata: lost\n\n';
    await page.route('**/api/v1/events*', (route) => {
      streams.push(route.request().url());
      return streams.length === 1
        ? route.fulfill({ contentType: 'text/event-stream', body })
        : route.continue();
    });
    await page.goto(`${dashboard.url}live`);
    await page.getByRole('heading', { name: 'Live lost' }).waitFor();
    await page.getByText('No events arrive now.').waitFor();
    await page.clock.fastForward(41_000);
    await page.getByRole('heading', { name: 'Live live' }).waitFor();
    expect(streams).toHaveLength(2);
    await page.clock.fastForward(41_000);
    await expect.poll(() => streams.length).toBe(3);
  });

  it('open the next stream at once when the server has ended one to check the rights again', async () => {
    const { page, queue, dashboard } = await onDashboard();
    const streams: string[] = [];
    const batch = { events: [], skipped: 0 };
    const body = `retry: 100000000\n\nid: work:0\ndata: ${JSON.stringify(batch)}\n\nevent: status\ndata: over\n\n`;
    await queue.add('a', 1, { id: 'meanwhile' });
    await page.route('**/api/v1/events*', (route) => {
      streams.push(new URL(route.request().url()).search);
      return streams.length === 1
        ? route.fulfill({ contentType: 'text/event-stream', body })
        : route.continue();
    });
    await page.goto(`${dashboard.url}live`);
    await page.getByRole('link', { name: 'meanwhile' }).waitFor();
    expect(streams).toEqual(['', '?since=work%3A0']);
  });

  it('can be limited to any type of event', async () => {
    const { page, faults, queue, dashboard } = await onDashboard();
    await page.goto(`${dashboard.url}live?type=published`);
    const type = page.getByRole('combobox', { name: 'Event' });
    expect(await type.locator('option').allInnerTexts()).toEqual(['all', ...EVENT_TYPES]);
    expect(await type.inputValue()).toBe('published');
    await page.getByRole('heading', { name: 'Live live' }).waitFor();
    await queue.publish('imported', { rows: 3 });
    await page.getByRole('cell', { name: 'imported' }).waitFor();
    expect(faults).toEqual([]);
  });

  it('come again after a refused stream, and after a pause all that happened', async () => {
    const { page, queue, dashboard } = await onDashboard();
    await page.route('**/api/v1/events*', (route) => route.fulfill({ status: 502, body: 'bad gateway' }));
    await page.goto(`${dashboard.url}live`);
    await page.getByRole('heading', { name: 'Live lost' }).waitFor();
    await page.unroute('**/api/v1/events*');
    await page.getByRole('heading', { name: 'Live live' }).waitFor();
    await queue.add('a', 1, { id: 'before' });
    await page.getByRole('link', { name: 'before' }).waitFor();
    const other = await open(`${dashboard.url}live`);
    await other.page.getByRole('heading', { name: 'Live live' }).waitFor();
    await page.getByRole('main').getByRole('button', { name: 'Freeze' }).click();
    await queue.add('a', 1, { id: 'meanwhile' });
    await other.page.getByRole('link', { name: 'meanwhile' }).waitFor();
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('link', { name: 'meanwhile' }).waitFor();
    expect(await page.getByRole('link', { name: 'before' }).count()).toBe(1);
  });

  it('have the headings of their values as soon as they are shown, and are those of the chosen queue', async () => {
    const dashboard = await bootDashboard(redis, { queues: ['mail'] });
    const { page, faults } = await open(`${dashboard.url}live`, { viewport: { width: 360, height: 800 } });
    await page.getByRole('heading', { name: 'Live live' }).waitFor();
    await page.evaluate(() => {
      const bare: string[] = [];
      Object.assign(window, { bare });
      const isBare = (node: Node): node is HTMLTableRowElement =>
        node instanceof HTMLTableRowElement && node.cells[0]!.dataset['label'] === undefined;
      new MutationObserver((records) =>
        bare.push(
          ...records
            .flatMap(({ addedNodes }) => [...addedNodes])
            .filter(isBare)
            .map((row) => row.innerText),
        ),
      ).observe(document.body, { childList: true, subtree: true });
    });
    for (const id of ['one', 'two', 'three']) {
      await dashboard.queue.add('a', 1, { id });
      await page.getByRole('link', { name: id }).first().waitFor();
    }
    expect(await page.evaluate(() => (window as unknown as { bare: string[] }).bare)).toEqual([]);
    await page.getByLabel('Queue').selectOption('mail');
    await page.getByRole('link', { name: 'three' }).waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
  });
});
