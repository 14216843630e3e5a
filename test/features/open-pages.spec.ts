import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { useBrowser } from '../support/browser.js';
import { atEnd } from '../support/cleanup.js';
import { bootDashboard } from '../support/dashboard.js';
import { gated } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { latch, type Latch } from '../support/wait.js';

const redis = useRedis();
const open = useBrowser();

/** Answers to calls of this address wait until the latch opens. */
async function hold(page: Page, url: string): Promise<Latch> {
  const gate = latch('the answers');
  await page.route(url, async (route) => {
    await gate.promise;
    await route.continue();
  });
  return gate;
}

/** The calls to this address, as they are made. */
function callsOf(page: Page, address: string): string[] {
  const calls: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes(address)) calls.push(request.url());
  });
  return calls;
}

/** Changes the answers to calls of this address. */
async function alter(page: Page, url: string, change: (answer: any) => unknown): Promise<void> {
  await page.route(url, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ json: change(await response.json()) });
  });
  atEnd(() => page.unrouteAll({ behavior: 'ignoreErrors' }));
}

async function withJobs(count: number) {
  const dashboard = await bootDashboard(redis);
  const { queue } = dashboard;
  await queue.pause();
  await queue.addBulk(
    Array.from({ length: count }, (_, n) => ({ name: 'a', data: n, options: { id: `job-${n}` } })),
  );
  const { page, faults } = await open(dashboard.url);
  return { dashboard, queue, page, faults, jobs: `${dashboard.url}queues/work/jobs` };
}

/** A search that found nothing in many jobs. */
async function afterLongSearch() {
  const { page, faults, jobs } = await withJobs(1);
  const calls = callsOf(page, '/api/v1/queues/work/jobs?');
  await alter(page, '**/api/v1/**/jobs?*', (list) => ({ ...list, examined: 10_000 }));
  await page.clock.install();
  await page.goto(`${jobs}?contains=nothing`);
  await page.getByText('Nothing matches.').waitFor();
  return { page, faults, calls, before: calls.length };
}

describe('a list of jobs', () => {
  it('keeps what a person types before it is loaded, and its filters in other states', async () => {
    const { page, faults, jobs } = await withJobs(3);
    const gate = await hold(page, '**/jobs?*');
    await page.goto(jobs);
    await page.getByLabel('Text in id, name or error, or filters').fill('job-1');
    gate.open();
    await page.getByRole('link', { name: 'job-2' }).waitFor();
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('1 match').waitFor();
    await page.getByRole('link', { name: /^delayed/ }).click();
    await page.getByText('Nothing matches.').waitFor();
    expect(new URL(page.url()).search).toBe('?contains=job-1&state=delayed');
    expect(faults).toEqual([]);
  });

  it('keeps a search that is not made yet on the next page and in other states, until it is cleared', async () => {
    const { page, faults, jobs } = await withJobs(60);
    await page.goto(jobs);
    const text = page.getByLabel('Text in id, name or error, or filters');
    await text.fill('job-5');
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'job-59' }).waitFor();
    await page.getByRole('link', { name: /^dead/ }).click();
    const reason = page.getByRole('combobox', { name: 'Reason' });
    await reason.selectOption('stalled');
    await page.getByRole('link', { name: /^waiting/ }).click();
    await reason.waitFor({ state: 'detached' });
    expect(await text.inputValue()).toBe('job-5');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('11 match').waitFor();
    expect(new URL(page.url()).search).toBe('?state=waiting&contains=job-5');
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.getByText('50 of 60 jobs').waitFor();
    await text.fill('job-7');
    await page.getByRole('link', { name: 'Clear' }).click();
    expect(await text.inputValue()).toBe('');
    expect(faults).toEqual([]);
  });

  it('says how many of the selected jobs an act has changed, and selects none after it', async () => {
    const { page, queue, faults, jobs } = await withJobs(3);
    await page.goto(jobs);
    await page.getByLabel('Select job-0').check();
    await page.getByLabel('Select job-1').check();
    await queue.remove('job-1');
    await page.getByRole('button', { name: 'Remove 2' }).click();
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByText('Remove: done for 1 of 2 jobs.').waitFor();
    await page.getByRole('button', { name: 'Remove all 1 waiting jobs' }).waitFor();
    expect(faults).toEqual([]);
  });

  it('is there at once when a person goes back to it, at the same place', async () => {
    const { page, faults, jobs } = await withJobs(90);
    await page.goto(`${jobs}?limit=100`);
    await page.getByRole('link', { name: 'job-89' }).click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    const gate = await hold(page, '**/jobs?*');
    await page.goBack();
    await page.getByRole('link', { name: 'job-89' }).waitFor();
    await expect.poll(() => page.evaluate(() => window.scrollY)).toBeGreaterThan(1_000);
    gate.open();
    expect(faults).toEqual([]);
  });

  it('is searched again less often if a search reads many jobs', async () => {
    const { page, faults, calls, before } = await afterLongSearch();
    await page.clock.runFor(25_000);
    expect(calls.length).toBe(before);
    await page.clock.runFor(10_000);
    await expect.poll(() => calls.length).toBe(before + 1);
    expect(faults).toEqual([]);
  });

  it('is not searched again each time it is brought to the front', async () => {
    const { page, faults, calls, before } = await afterLongSearch();
    await show(page, false);
    await show(page, true);
    await page.clock.runFor(1_000);
    expect(calls.length).toBe(before);
    await show(page, false);
    await page.clock.runFor(60_000);
    expect(calls.length).toBe(before);
    await show(page, true);
    await expect.poll(() => calls.length).toBe(before + 1);
    expect(faults).toEqual([]);
  });

  it('is read again after a failure, also a page that is read once', async () => {
    const { page, jobs } = await withJobs(60);
    await page.goto(jobs);
    const next = page.getByRole('link', { name: 'Next page' });
    await next.waitFor();
    await page.route('**/jobs?*cursor*', (route) => route.fulfill({ status: 500, json: {} }), { times: 1 });
    await next.click();
    await page.getByRole('alert').waitFor();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'job-59' }).waitFor();
    expect(new URL(page.url()).searchParams.has('cursor')).toBe(true);
  });

  it('explains a filter that the server refuses', async () => {
    const { page, jobs } = await withJobs(1);
    await page.goto(`${jobs}?where=tenant`);
    await page.getByText('The address is not valid.').waitFor();
    expect(await page.locator('.empty').innerText()).toContain('a field, = and a value, such as tenant.id=7');
  });

  it('has the box in front of the name, 360 px wide', async () => {
    const { page, faults, jobs } = await withJobs(2);
    await page.setViewportSize({ width: 360, height: 800 });
    await page.goto(jobs);
    const box = (await page.getByLabel('Select job-0').boundingBox())!;
    const name = (await page.getByRole('rowheader').first().evaluate(textBox))!;
    expect(Math.abs(box.y + box.height / 2 - name.middle)).toBeLessThan(4);
    expect(box.x + box.width).toBeLessThan(name.left);
    await page.getByLabel('Select job-0').click();
    await page.getByText('1 job selected').waitFor();
    expect(faults).toEqual([]);
  });
});

describe('the dead jobs', () => {
  it('are read again less often if there are many', async () => {
    const { page, dashboard, faults } = await withJobs(0);
    const calls = callsOf(page, '/api/v1/dead');
    await alter(page, '**/api/v1/dead', (view) => ({
      ...view,
      examined: { work: { examined: 2_000, total: 9_000 } },
    }));
    await page.clock.install();
    await page.goto(`${dashboard.url}dead`);
    await page.getByText('the last 2,000 of 9,000').waitFor();
    const before = calls.length;
    await page.clock.runFor(25_000);
    expect(calls.length).toBe(before);
    await page.clock.runFor(10_000);
    await expect.poll(() => calls.length).toBe(before + 1);
    expect(faults).toEqual([]);
  });
});

describe('the list of queues', () => {
  it('has a button to pause only for the queues that the person may pause', async () => {
    const dashboard = await bootDashboard(redis, {
      queues: ['mail'],
      dashboard: { authorize: (_request, _action, { queue }) => (queue === 'mail' ? 'viewer' : 'admin') },
    });
    const { page, faults } = await open(`${dashboard.url}queues`);
    await page.getByRole('button', { name: 'Pause work' }).waitFor();
    await page.getByRole('link', { name: 'mail', exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Pause mail' }).count()).toBe(0);
    expect(faults).toEqual([]);
  });
});

describe('an open page', () => {
  it('keeps an edit when the session ends, and saves it after a login', async () => {
    const { page, queue, jobs } = await withJobs(1);
    await page.goto(`${jobs}/job-0`);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel(/Data as JSON/).fill('{"edited":1}');
    await page.route('**/api/v1/**', (route) =>
      route.fulfill({ status: 401, json: { message: 'Unauthorized', statusCode: 401 } }),
    );
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('The data is out of date. You are not logged in').waitFor();
    expect(await page.getByLabel(/Data as JSON/).inputValue()).toBe('{"edited":1}');
    await page.unroute('**/api/v1/**');
    await page.route('**/api/v1/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<h1>Log in</h1>' }),
    );
    await page.getByRole('button', { name: 'Reload', exact: true }).click();
    await page.getByText('The data is out of date. You are not logged in').waitFor();
    await page.unroute('**/api/v1/**');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.tree').getByText('edited:').waitFor();
    expect((await queue.get('job-0'))?.data).toEqual({ edited: 1 });
  });

  it('goes on by itself while a person edits', async () => {
    const { page, jobs } = await withJobs(1);
    await page.goto(`${jobs}/job-0`);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel(/Data as JSON/).fill('{"edited":1}');
    await page.route('**/api/v1/**', (route) => route.fulfill({ status: 401, json: {} }));
    await page.getByRole('button', { name: 'Reload', exact: true }).click();
    await page.getByRole('alert').waitFor();
    await page.unroute('**/api/v1/**');
    await page.getByRole('alert').waitFor({ state: 'detached' });
    expect(await page.getByLabel(/Data as JSON/).inputValue()).toBe('{"edited":1}');
  });

  it('keeps an edit of a job that is removed meanwhile, and says so', async () => {
    const { page, queue, jobs } = await withJobs(1);
    await page.goto(`${jobs}/job-0`);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel(/Data as JSON/).fill('{"edited":1}');
    await queue.remove('job-0');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('This job is gone').waitFor();
    expect(await page.getByLabel(/Data as JSON/).inputValue()).toBe('{"edited":1}');
    expect(await page.getByRole('button', { name: 'Remove' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Keep as it is' }).click();
    await page.getByText('There is no such job, or no longer.').waitFor();
  });

  it('follows the theme and the time zone that are chosen in another tab', async () => {
    const { page, dashboard } = await withJobs(0);
    const other = await page.context().newPage();
    await other.goto(dashboard.url);
    await other.getByRole('button', { name: 'Settings' }).click();
    await other.getByLabel('Theme').selectOption('light');
    await other.getByLabel('Times').selectOption('UTC');
    await page.getByRole('button', { name: 'Settings' }).click();
    await expect.poll(() => page.getByLabel('Theme').inputValue()).toBe('light');
    await expect.poll(() => page.getByLabel('Times').inputValue()).toBe('UTC');
    expect(await page.evaluate(() => document.documentElement.dataset['theme'])).toBe('light');
  });

  it('has no shortcuts after they are switched off, also when it is opened again', async () => {
    const { page, faults } = await withJobs(0);
    const setShortcuts = async (are: boolean) => {
      await page.getByRole('button', { name: 'Settings' }).click();
      await page.getByRole('button', { name: 'Shortcuts' }).click();
      await page.getByLabel('Use these shortcuts').setChecked(are);
      await page.keyboard.press('Escape');
      await page.getByLabel('Use these shortcuts').waitFor({ state: 'detached' });
    };
    await setShortcuts(false);
    const theme = () => page.evaluate(() => document.documentElement.dataset['theme']);
    await page.keyboard.press('t');
    expect(await theme()).toBe('system');
    await page.reload();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('t');
    expect(await theme()).toBe('system');
    await setShortcuts(true);
    await page.keyboard.press('t');
    expect(await theme()).toBe('light');
    expect(faults).toEqual([]);
  });

  it('says that it is out of date as long as one of its calls fails', async () => {
    const { page, dashboard } = await withJobs(1);
    await page.route('**/api/v1/series?*', (route) => route.fulfill({ status: 500, json: {} }));
    await page.goto(dashboard.url);
    await page.getByText('The data is out of date.').waitFor();
    await page.waitForResponse('**/api/v1/overview');
    await page.getByRole('link', { name: 'work', exact: true }).waitFor();
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    expect(await page.getByText('The data is out of date.').count()).toBe(1);
  });

  it('says so if the server does not answer', async () => {
    const { page, dashboard } = await withJobs(1);
    await page.addInitScript(() => {
      const timeout = AbortSignal.timeout.bind(AbortSignal);
      AbortSignal.timeout = (ms) => timeout(Math.min(ms, 50));
    });
    const gate = await hold(page, '**/api/v1/overview');
    await page.goto(dashboard.url);
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').innerText()).toContain('The application cannot be reached.');
    gate.open();
  });

  it('survives an answer that it cannot show', async () => {
    const { page, dashboard } = await withJobs(1);
    await page.route('**/api/v1/overview', (route) => route.fulfill({ json: { queues: null } }));
    await page.goto(dashboard.url);
    await page.getByText('This page has an error.').waitFor();
    await page.getByRole('link', { name: 'Schedules' }).click();
    await page.getByRole('heading', { name: 'Schedules' }).waitFor();
    expect(await page.getByText('This page has an error.').count()).toBe(0);
  });
});

describe('long lists', () => {
  it('say that there are more schedules, and lead back to the newest actions', async () => {
    const { page, dashboard, queue } = await withJobs(0);
    const ids = Array.from({ length: 203 }, (_, n) => `s-${n}`);
    await Promise.all(ids.map((id) => queue.schedules.upsert(id, { every: '1h' }, { name: 'a' })));
    await page.goto(`${dashboard.url}schedules`);
    await page.getByText('Not shown: 3 of work.').waitFor();
    expect(await page.locator('tr[data-row]').count()).toBe(200);
    await queue.as('ada').pause();
    await queue.as('ada').resume();
    await alter(page, '**/api/v1/actions', (list) => ({ ...list, cursor: '9999999999999-0' }));
    await page.goto(`${dashboard.url}actions`);
    await page.getByRole('button', { name: 'Older' }).click();
    await page.getByRole('button', { name: 'Newest' }).click();
    expect(new URL(page.url()).search).toBe('');
  });
});

describe('a name or an id', () => {
  it('turns no words around it, also not in a question', async () => {
    const { page, dashboard, queue, faults, jobs } = await withJobs(0);
    const name = 'a\u202Eb';
    await queue.add(name, name, { id: 'c\u2066d', group: name });
    await page.goto(`${jobs}?name=${encodeURIComponent(name)}`);
    await page.getByRole('button', { name: /^Remove all/ }).click();
    await page.getByText('Remove all waiting jobs with name a\\u202eb in queue work. Jobs').waitFor();
    await page.getByRole('button', { name: 'Keep as it is' }).click();
    // Also where only a screen reader says them.
    await page.getByLabel('Select c\\u2066d').waitFor();
    await page.getByRole('link', { name: 'c\\u2066d' }).click();
    await page.getByRole('heading', { name: 'a\\u202eb' }).waitFor();
    await page.locator('.tree').waitFor();
    const turns = /[\u202a-\u202e\u2066-\u2069]/;
    expect(await page.locator('body').innerText()).not.toMatch(turns);
    expect(await page.title()).not.toMatch(turns);
    await page.getByRole('button', { name: 'Edit' }).click();
    expect(await page.getByLabel(/Data as JSON/).inputValue()).toBe(JSON.stringify(name));
    await dashboard.api('POST', 'queues/work/bulk', { kind: 'remove', filter: { state: 'waiting', name } });
    await page.goto(`${dashboard.url}actions`);
    await page.getByRole('cell', { name: 'waiting jobs with name a' }).waitFor();
    expect(await page.locator('body').innerText()).not.toMatch(turns);
    expect(faults).toEqual([]);
  });
});

describe('the page of a delayed job', () => {
  it('has one time at which it is due, though the clocks of two hosts differ', async () => {
    const { page, queue, jobs } = await withJobs(0);
    await queue.add('a', 1, { id: 'later', delay: '1h' });
    await alter(page, '**/api/v1/**/jobs/later', (job) => ({
      ...job,
      dueAt: job.createdAt + job.delay + 72,
    }));
    await page.goto(`${jobs}/later`);
    await page.getByText('First run, after a delay of 1 h').waitFor();
    expect(await page.locator('.timeline li').count()).toBe(2);
    expect(await page.getByText('Delayed until').locator('..').innerText()).toMatch(/in\s(59\smin|1\sh)/);
  });
});

describe('the bar at the top', () => {
  it('fits into windows of any width', async () => {
    const dashboard = await bootDashboard(redis, {
      dashboard: {
        authorize: () => ({ allow: 'admin', actor: 'somebody@a-long-domain.example' }),
        title: 'title '.repeat(10),
        environment: 'environment of this dashboard',
      },
    });
    const { page, faults } = await open(dashboard.url);
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByText('somebody@').waitFor();
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    for (const width of [1280, 1130, 1024, 900, 640, 360]) {
      await page.setViewportSize({ width, height: 800 });
      await expect.poll(overflow).toBe(0);
    }
    expect(faults).toEqual([]);
  });
});

describe('a chart', () => {
  it('shows the values at the mouse, and the step that is not over as a rate', async () => {
    const { handlers } = gated();
    const dashboard = await bootDashboard(redis, { handlers: { done: handlers['done']! } });
    const { page, faults } = await open(dashboard.url);
    const stepMs = 3_600_000;
    const last = Date.now() - stepMs / 2;
    await page.route('**/api/v1/series?*', (route) =>
      route.fulfill({
        json: {
          stepMs,
          times: [last - 2 * stepMs, last - stepMs, last],
          completed: [0, 420_000, 300_000],
          added: [0, 0, 0],
          failed: [60_000, 0, 0],
          dead: [0, 0, 0],
          byName: {},
          byQueue: {},
          isCounted: true,
        },
      }),
    );
    await page.goto(`${dashboard.url}?hours=72`);
    const shown = page.locator('figcaption');
    await shown.getByText(/completed (9,9|10,0)\d\d/).waitFor();
    await page.locator('.u-over').hover();
    await shown.getByText('completed 7,000').waitFor();
    await page.locator('.u-over').hover({ position: { x: 4, y: 4 } });
    await shown.getByText('failed attempts 1,000').waitFor();
    await page.getByText('As a table').click();
    expect(await page.getByRole('row').nth(1).getByRole('cell').nth(1).textContent()).toMatch(/^(9,9|10,0)/);
    expect(faults).toEqual([]);
  });
});

/** Says to the page whether a person sees it. */
async function show(page: Page, isVisible: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
    document.dispatchEvent(new Event('visibilitychange'));
  }, !isVisible);
}

/** The middle and the left edge of the text of an element. */
function textBox(cell: Element): { readonly left: number; readonly middle: number } {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const { left, top, height } = range.getBoundingClientRect();
  return { left, middle: top + height / 2 };
}

it('a page goes on within two seconds after Redis is back, whatever the time between its reads', async () => {
  const { url } = await bootDashboard(redis);
  const { page } = await open(url);
  await page.clock.install();
  await page.goto(`${url}redis`);
  await page.getByRole('heading', { name: 'Server' }).waitFor();
  await page.clock.pauseAt(Date.now() + 1_000);
  const asked = callsOf(page, '/api/v1/redis');
  const body = JSON.stringify({ error: { code: 'GODWIT_REDIS_UNAVAILABLE', message: 'Redis is away' } });
  await page.route('**/api/v1/**', (route) =>
    route.fulfill({ status: 503, contentType: 'application/json', body }),
  );
  const alert = page.getByRole('alert');
  await page.clock.runFor(10_000);
  await alert.getByText('The data is out of date.').waitFor();
  await page.clock.runFor(5_000);
  expect(asked.length).toBe(1);
  await page.unroute('**/api/v1/**');
  await page.clock.runFor(2_000);
  await alert.waitFor({ state: 'detached' });
  expect(asked.length).toBe(2);
});
