import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { gated } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const open = useBrowser();

/** How many px of the document are outside of the window. */
const overflowOf = (page: Page) =>
  page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - window.innerWidth));

/** The texts of buttons that are cut off. */
const cutButtonsOf = (page: Page) =>
  page
    .locator('main button:visible')
    .evaluateAll((buttons) =>
      buttons.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent),
    );

describe.each([1280, 360])('pages with long words, %i px wide', (width) => {
  it('do not scroll sideways', async () => {
    const long = 'x'.repeat(200);
    const queue = `q${'y'.repeat(120)}`;
    const { gate, handlers } = gated();
    const dashboard = await bootDashboard(redis, {
      queues: [queue],
      handlers: {
        active: handlers['active']!,
        '*': async (job) => {
          await job.log(long);
          await job.progress({ [long]: long });
          throw Object.assign(new Error(long.repeat(2)), { name: long });
        },
      },
      dashboard: { authorize: () => ({ allow: 'admin', actor: long }) },
    });
    const own = dashboard.queue.as(long);
    await own.add('active', 1, { id: `${long}-runs` });
    await own.add(long, { [long]: long }, { id: long, attempts: 2, backoff: 0, group: long });
    await until(async () => (await own.get(long))?.state === 'dead', PATIENT);
    await own.add(long, 1, { id: `${long}-waits`, delay: '1h', headers: { trace: long } });
    await own.schedules.upsert(long, { every: '1h' }, { name: long, data: { [long]: long } });
    await own.group(long).set({ concurrency: 1 });
    await own.limits.set({ concurrency: 5 }, { name: long });
    await dashboard.queueOf(queue).add('a', 1, { id: 'a' });
    const { page, faults } = await open(dashboard.url, { viewport: { width, height: 900 } });
    await page.route('**/api/v1/workers', async (route) => {
      const view = (await (await route.fetch()).json()) as { workers: { host: string }[] };
      for (const one of view.workers) one.host = long;
      await route.fulfill({ json: view });
    });
    const job = (id: string) => `queues/work/jobs/${id}`;
    const wide: (readonly [string, number])[] = [];
    for (const [path, shown] of [
      ['', 'Needs attention'],
      ['queues', queue],
      ['queues/work', 'By name'],
      [`queues/${queue}`, 'By day'],
      [`queues/${queue}/jobs/a`, 'Timeline'],
      ['queues/work/jobs?state=dead', long],
      [`queues/work/jobs?state=dead&error=${long}`, 'Nothing matches'],
      [job(long), 'Why it died'],
      [job(`${long}-runs`), 'Timeline'],
      [job(`${long}-waits`), 'Headers'],
      [job(`${long}-gone`), 'no such job'],
      ['dead', long],
      ['schedules', long],
      ['workers', 'slots in use'],
      ['actions', long],
    ] as const) {
      await page.goto(`${dashboard.url}${path}`);
      await page.getByRole('main').getByText(shown).first().waitFor();
      const overflow = await overflowOf(page);
      if (overflow > 0) wide.push([path, overflow]);
      for (const button of await cutButtonsOf(page)) wide.push([`${path}: ${button}`, 0]);
    }
    expect(wide).toEqual([]);
    gate.open();
    expect(faults.filter((fault) => !/404/.test(fault))).toEqual([]);
  });
});

const TIMES = {
  perMinute: 1_234,
  run: { p50: 340, p95: 1_730, p99: 95_000 },
  wait: { p50: 4_200, p95: 63_000, p99: 205_000 },
  runByName: {},
};

const FAST = { ...TIMES, run: { p50: 118, p95: 237, p99: 248 } };

/** A queue with large numbers, as the server answers it. */
const busy = (name: string) => ({
  name,
  paused: false,
  pausedPlace: null,
  oldestWaitingMs: 253_000,
  consumers: 12,
  slots: 120,
  counts: { waiting: 12_345, active: 100, delayed: 2_322, completed: 0, dead: 1_203, cancelled: 0 },
  today: { processed: 184_233, failed: 12_444, dead: 120, cancelled: 3 },
  running: 100,
});

/** The pages of queues with large numbers. */
async function openBusy(
  width: number,
  attention: readonly object[] = [],
  path = 'queues',
  last: 'button' | 'link' = 'button',
) {
  const dashboard = await bootDashboard(redis);
  const { page, faults } = await open(dashboard.url, { viewport: { width, height: 900 } });
  const names = ['shop.notifications', 'shop.emails', 'media'];
  const now = Date.now();
  await page.route('**/api/v1/me', async (route) => {
    const me = (await (await route.fetch()).json()) as object;
    await route.fulfill({ json: { ...me, queues: names, pausable: names } });
  });
  await page.route('**/api/v1/overview', (route) =>
    route.fulfill({ json: { now, queues: names.map(busy), unreadable: {}, attention, processes: 12 } }),
  );
  const byQueue = Object.fromEntries(names.map((name) => [name, name === 'media' ? FAST : TIMES]));
  const step = {
    stepMs: 60_000,
    times: [now],
    added: [1],
    completed: [1],
    failed: [0],
    dead: [0],
    byName: {},
    isCounted: true,
  };
  await page.route('**/api/v1/series?*', (route) => route.fulfill({ json: { ...step, byQueue } }));
  await page.goto(`${dashboard.url}${path}`);
  await page.getByRole(last, { name: /(^|Pause )media$/ }).waitFor();
  return { page, faults };
}

describe('pages with large numbers', () => {
  it('break no number of a day, 360 px wide', async () => {
    const dashboard = await bootDashboard(redis);
    const { page, faults } = await open(dashboard.url, { viewport: { width: 360, height: 900 } });
    await page.route('**/api/v1/queues/work', async (route) => {
      const view = (await (await route.fetch()).json()) as { days: object[] };
      const days = view.days.map((day) => ({ ...day, processed: 27_608, failed: 4_201, dead: 1_234_567 }));
      await route.fulfill({ json: { ...view, days } });
    });
    await page.goto(`${dashboard.url}queues/work`);
    for (const [label, number] of [
      ['Done', '27,608'],
      ['Failed attempts', '4,201'],
      ['Dead', '1,234,567'],
    ] as const) {
      const cell = page.locator(`td[data-label="${label}"]`, { hasText: number }).first();
      await cell.waitFor();
      expect(await cell.evaluate(linesOf)).toEqual([number]);
    }
    expect(faults).toEqual([]);
  });

  it('show all columns of the queues, 1280 px wide', async () => {
    const { page, faults } = await openBusy(1280);
    const table = page.getByRole('region', { name: 'Queues' });
    expect(await table.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
    await page.getByRole('cell', { name: '≈ 4.2 s · 1.1 min · 3.4 min' }).first().waitFor();
    await page.getByRole('cell', { name: '≈ 118 · 237 · 248 ms' }).waitFor();
    expect(faults).toEqual([]);
  });

  it('give a table with a group the alignment of its numbers, 1280 px wide', async () => {
    const { page, faults } = await openBusy(1280);
    const isRight = (name: string) =>
      page
        .getByRole('columnheader', { name })
        .evaluate((cell) => getComputedStyle(cell).textAlign === 'right');
    expect(await Promise.all(['Dead', 'Oldest', 'Per min', 'Failed'].map(isRight))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(faults).toEqual([]);
  });

  it('have no wider gaps between numbers than between texts', async () => {
    const { page, faults } = await openBusy(1200);
    const gapOf = (name: string) =>
      page.getByRole('columnheader', { name }).evaluate((cell) => getComputedStyle(cell).paddingRight);
    expect(await gapOf('Delayed')).toBe(await gapOf('Workers'));
    expect(faults).toEqual([]);
  });

  it.each([1200, 1280])('break names of queues only behind a separator, %i px wide', async (width) => {
    const { page, faults } = await openBusy(width);
    const broken = await page.locator('tbody th a').evaluateAll((links) =>
      links.flatMap((link) =>
        [...link.childNodes].flatMap((part) => {
          const range = document.createRange();
          range.selectNodeContents(part);
          return range.getClientRects().length > 1 ? [part.textContent] : [];
        }),
      ),
    );
    expect(broken).toEqual([]);
    expect(await page.getByRole('link', { name: 'shop.notifications' }).count()).toBe(1);
    expect(faults).toEqual([]);
  });

  it('show four numbers of each queue on the overview, and the rest on the page of the queues, 360 px wide', async () => {
    const { page, faults } = await openBusy(360, [], '', 'link');
    const row = page.getByRole('row', { name: 'media' });
    const shown = () =>
      row
        .getByRole('cell')
        .evaluateAll((cells) => cells.map((cell) => (cell as HTMLElement).dataset['label']));
    expect(await shown()).toEqual(['Waiting', 'Running', 'Dead', 'Oldest']);
    await page.getByRole('link', { name: 'All numbers of the queues' }).click();
    await page.getByRole('button', { name: 'Pause media' }).waitFor();
    expect((await shown()).length).toBeGreaterThan(10);
    expect(faults).toEqual([]);
  });

  it('break no number from its unit, and end all values at an edge, 360 px wide', async () => {
    const { page, faults } = await openBusy(360);
    const lines = await page.getByText('1.1 min').first().evaluate(linesOf);
    expect(lines.filter((line) => !/^(≈\s)?\d/.test(line))).toEqual([]);
    const ends = await page.locator('tbody td:visible').evaluateAll((cells) =>
      cells.map((cell) => {
        const { paddingRight } = getComputedStyle(cell);
        return Math.round(cell.getBoundingClientRect().right - Number.parseFloat(paddingRight));
      }),
    );
    expect(new Set(ends).size).toBe(2);
    const nav = page.getByRole('navigation', { name: 'Pages' });
    await nav.getByRole('link', { name: 'Redis' }).click();
    await page.getByRole('heading', { name: 'Redis' }).waitFor();
    await page.reload();
    await expect.poll(() => nav.getByRole('link', { name: 'Redis' }).boundingBox().then(isSeen)).toBe(true);
    expect(faults).toEqual([]);
  });
});

it('an overview that lists much fits a window, and shows the rest on demand', async () => {
  const list = Array.from({ length: 12 }, (_, at) => ({
    level: 'bad',
    text: `Trouble ${at}.`,
    page: ['queues', 'dead', 'schedules'][at % 3],
  }));
  const { page, faults } = await openBusy(1280, list, '');
  const shown = page.getByRole('link', { name: 'Trouble' });
  expect(await shown.count()).toBe(10);
  await page.getByText('2 more').click();
  await page.getByText('Trouble 11.').waitFor();
  expect(await shown.count()).toBe(12);
  expect(faults).toEqual([]);
});

describe('a chart', () => {
  it('marks whole numbers of a unit, and cuts none of them off', async () => {
    const dashboard = await bootDashboard(redis);
    const { page, faults } = await open(dashboard.url);
    await page.addInitScript(() => {
      const drawn: { text: string; left: number }[] = [];
      Object.assign(window, { drawn });
      // oxlint-disable-next-line typescript/unbound-method -- it is called with a context
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        if (this.textAlign === 'right') drawn.push({ text, left: x - this.measureText(text).width });
        fillText.call(this, text, x, y);
      };
    });
    const stepMs = 60_000;
    const times = Array.from({ length: 30 }, (_, at) => Date.now() + (at - 32) * stepMs);
    const one = times.map(() => 1);
    const all = (ms: number) => Object.fromEntries(['p50', 'p95', 'p99'].map((p) => [p, one.map(() => ms)]));
    const series = {
      stepMs,
      times,
      added: one,
      completed: one.map(() => 10),
      failed: one,
      dead: one,
      byName: {},
      isCounted: true,
    };
    await page.route('**/api/v1/queues/work/series?*', (route) =>
      route.fulfill({ json: { ...series, run: all(20_000), wait: all(205_000) } }),
    );
    await page.goto(`${dashboard.url}queues/work`);
    const marks = () =>
      page.evaluate(() => (window as unknown as { drawn: { text: string; left: number }[] }).drawn);
    await expect.poll(async () => (await marks()).some(({ text }) => /^3\smin$/.test(text))).toBe(true);
    const labels = (await marks()).filter(({ text }) => /[a-z]/.test(text));
    expect([...new Set(labels.map(({ text }) => text.replaceAll('\u00a0', ' ')))].toSorted()).toEqual([
      '1 min',
      '2 min',
      '3 min',
    ]);
    const counts = (await marks()).map(({ text }) => text).filter((text) => /^\d+$/.test(text));
    expect(counts).toContain('10');
    // A step of 2.5 would mark 7.5 as 8.
    expect(counts).not.toContain('8');
    expect((await marks()).filter(({ left }) => left < 0)).toEqual([]);
    await page.getByText('As a table').last().click();
    await page.getByRole('cell', { name: '≈ 3 min 25 s' }).first().waitFor();
    expect(faults).toEqual([]);
  });
});

const isSeen = (box: { x: number; width: number } | null) =>
  box !== null && box.x >= 0 && box.x + box.width <= 360;

/** The lines of the text of a cell. */
function linesOf(cell: Element): string[] {
  const text = cell.firstChild as Text;
  const range = document.createRange();
  const lines: string[] = [];
  let top = 0;
  for (let at = 0; at < text.length; at += 1) {
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    const box = range.getBoundingClientRect();
    if (box.width === 0) continue;
    if (lines.length === 0 || Math.abs(box.top - top) > 4) lines.push('');
    top = box.top;
    lines.push(`${lines.pop() ?? ''}${text.data[at] ?? ''}`);
  }
  return lines;
}
