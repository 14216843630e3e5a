import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { gated } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { ROOT } from '../support/sources.js';
import { until } from '../support/wait.js';

const UI = join(ROOT, 'dist/subpaths/dashboard/ui');

const redis = useRedis();
const open = useBrowser();

describe('what the browser loads', () => {
  const script = readFileSync(join(UI, 'app.js'));
  const style = readFileSync(join(UI, 'app.css'));

  it('a process is paused, resumed and made quiet on the page of workers', async () => {
    const dashboard = await bootDashboard(redis, {
      handlers: { a: () => {} },
      root: { lease: { duration: '1s' } },
    });
    const { page, faults } = await open(`${dashboard.url}workers`);
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await press('Pause');
    await page.getByText('paused here').waitFor();
    await press('Resume');
    await page.getByText('paused here').waitFor({ state: 'detached' });
    await press('Quiet');
    await press('Make it quiet');
    await page.getByText('quiet here').waitFor();
    expect(await page.getByRole('button', { name: 'Resume' }).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it('is at most 70 KB of script and 15 KB of style, compressed', () => {
    expect(gzipSync(script, { level: 9 }).length).toBeLessThan(70_000);
    expect(gzipSync(style, { level: 9 }).length).toBeLessThan(15_000);
  });

  it('contains no address except the namespaces of XML', () => {
    const found = `${script.toString()}${style.toString()}`.match(/https?:\/\/[^\s"'`)]*/g) ?? [];
    expect(found.filter((address) => !address.startsWith('http://www.w3.org/'))).toEqual([]);
  });

  it('creates no HTML from text', () => {
    const own = script
      .toString()
      .match(/\b(insertAdjacentHTML|outerHTML|document\.write|eval\(|new Function)/g);
    expect(own).toBeNull();
  });
});

describe('the pages', () => {
  it('lead from the overview to a dead job, which is retried', async () => {
    let isWell = false;
    const dashboard = await bootDashboard(redis, {
      handlers: {
        pay: () => {
          if (!isWell) throw new Error('the bank is closed');
          return { paid: 12 };
        },
      },
    });
    await dashboard.queue.add('pay', { order: 7 }, { id: 'pay-7', attempts: 1, retention: '1h' });
    await until(async () => (await dashboard.queue.get('pay-7'))?.state === 'dead', PATIENT);
    const { page, faults } = await open(dashboard.url);
    await page.getByRole('link', { name: /1 job died today/ }).click();
    await page.getByRole('link', { name: 'pay', exact: true }).click();
    await page.getByRole('link', { name: 'pay-7' }).click();
    await page.getByText('the bank is closed').first().waitFor();
    expect(new URL(page.url()).pathname).toBe('/queues/queues/work/jobs/pay-7');
    isWell = true;
    await page.getByRole('button', { name: 'Retry', exact: true }).click();
    await page.getByText('paid').waitFor();
    await page.locator('.state.completed').waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Jobs' }).waitFor();
    expect(faults).toEqual([]);
  });

  it('show the log of a job by attempt, with how each attempt failed', async () => {
    const dashboard = await bootDashboard(redis, {
      handlers: {
        sync: async (job) => {
          await job.log(`fetching page ${job.attempt}`);
          throw new Error(`page ${job.attempt} is broken`);
        },
      },
    });
    await dashboard.queue.add('sync', 1, { id: 'a', attempts: 2, backoff: 0 });
    await until(async () => (await dashboard.queue.get('a'))?.state === 'dead', PATIENT);
    const { page, faults } = await open(`${dashboard.url}queues/work/jobs/a`);
    const attempts = page.locator('details.log');
    await attempts.nth(1).waitFor();
    expect(await attempts.locator('summary').allInnerTexts()).toEqual([
      'Attempt 1 failed: Error: page 1 is broken · 1 line',
      'Attempt 2 failed: Error: page 2 is broken · 1 line',
    ]);
    expect(await page.locator('details.log[open] pre').allInnerTexts()).toEqual(['fetching page 2']);
    await attempts.first().locator('summary').click();
    await page.getByText('fetching page 1').waitFor();
    expect(faults).toEqual([]);
  });

  it('edit the data of a job and keep its numbers and hidden values', async () => {
    const dashboard = await bootDashboard(redis);
    await dashboard.queue.pause();
    await dashboard.queue.add('a', { token: 's3cret', city: 'Bonn' }, { id: 'a' });
    const { page, faults } = await open(`${dashboard.url}queues/work/jobs/a`);
    await page.locator('.hidden').waitFor();
    expect(await page.content()).not.toContain('s3cret');
    await page.getByRole('button', { name: 'Edit' }).click();
    const box = page.getByRole('textbox', { name: /Data as JSON/ });
    const text = await box.inputValue();
    await box.fill(text.replace('"Bonn"', '12345678901234567890'));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('12345678901234567890').waitFor();
    expect((await dashboard.queue.get('a'))?.data).toMatchObject({ token: 's3cret' });
    expect(faults).toEqual([]);
  });

  it('add a job, and show it', async () => {
    const dashboard = await bootDashboard(redis);
    await dashboard.queue.pause();
    const { page, faults } = await open(`${dashboard.url}queues/work/jobs`);
    await page.getByRole('button', { name: 'Add a job' }).click();
    await page.getByLabel('Name of the job').fill('welcome');
    await page.getByLabel('Own id').fill('new-1');
    await page.getByLabel(/Data of the new job/).fill('{"to":"ada"}');
    await page.getByRole('button', { name: 'Add it' }).click();
    await page.getByRole('heading', { name: 'welcome waiting' }).waitFor();
    expect(await dashboard.queue.get('new-1')).toMatchObject({ name: 'welcome', data: { to: 'ada' } });
    expect(faults).toEqual([]);
  });

  it('filter, select and act on all that match', async () => {
    const dashboard = await bootDashboard(redis);
    const { queue } = dashboard;
    await queue.pause();
    await queue.addBulk(Array.from({ length: 120 }, (_, n) => ({ name: n % 2 ? 'odd' : 'even', data: n })));
    const { page, faults } = await open(`${dashboard.url}queues/work/jobs?state=waiting`);
    await page.getByText('50 of 120 jobs').waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'First page' }).waitFor();
    await page.getByLabel('Name', { exact: true }).fill('odd');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('50 match').waitFor();
    expect(new URL(page.url()).search).toBe('?state=waiting&name=odd');
    await page.getByRole('button', { name: 'Remove all waiting jobs with name odd' }).click();
    await page.getByRole('button', { name: 'Remove them' }).click();
    await page.getByRole('cell', { name: /60 done, \d+ of 120 examined/ }).waitFor();
    await page.getByRole('cell', { name: 'done', exact: true }).waitFor();
    expect((await queue.counts()).waiting).toBe(60);
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.locator('[data-pick]').nth(1).check();
    await page.locator('[data-pick]').nth(2).check();
    await page.getByRole('button', { name: 'Cancel 2' }).click();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await until(async () => (await queue.counts()).waiting === 58, PATIENT);
    expect(faults).toEqual([]);
  });

  it('act on all that match at a rate, show how far they are, and stop', async () => {
    const dashboard = await bootDashboard(redis);
    const { queue } = dashboard;
    await queue.pause();
    await queue.addBulk(Array.from({ length: 300 }, (_, n) => ({ name: 'a', data: { tenant: n % 2 } })));
    const { page, faults } = await open(`${dashboard.url}queues/work/jobs?where=tenant%3D1`);
    await page.getByRole('button', { name: 'Remove all waiting jobs with data tenant=1' }).click();
    await page.getByLabel('At most per second').selectOption('10');
    await page.getByRole('button', { name: 'Remove them' }).click();
    const row = page.getByRole('row').filter({ hasText: 'at most 10 per second' });
    await row.getByText(/[1-9]\d* done, \d+ of 300 examined/).waitFor();
    await page.goto(`${dashboard.url}queues/work`);
    await row.getByRole('button', { name: 'Stop' }).click();
    await row.getByText('stopped', { exact: true }).waitFor();
    expect((await queue.counts()).waiting).toBeGreaterThan(150);
    await page.goto(`${dashboard.url}actions`);
    await row.getByRole('button', { name: 'Continue' }).waitFor();
    const others = await queue.jobs({ state: 'waiting', where: { tenant: 0 }, limit: 1000 });
    expect(others.jobs).toHaveLength(150);
    expect(faults).toEqual([]);
  });

  it('pause a queue in the list, which groups queues of one prefix', async () => {
    const dashboard = await bootDashboard(redis, { queues: ['shop.mail', 'shop.media'] });
    await dashboard.queueOf('shop.mail').addBulk([1, 2, 3].map((data) => ({ name: 'a', data })));
    await dashboard.queueOf('shop.media').add('a', 1);
    const { page, faults } = await open(`${dashboard.url}queues`);
    const group = page.getByRole('row').filter({ hasText: 'shop.*' });
    expect(await group.getByRole('cell').first().textContent()).toBe('4');
    expect(await page.getByText('work.*').count()).toBe(0);
    await page.getByRole('button', { name: 'Pause shop.media' }).click();
    await page.getByRole('button', { name: 'Pause it' }).click();
    await page.getByRole('button', { name: 'Resume shop.media' }).waitFor();
    expect(await dashboard.queueOf('shop.media').isPaused()).toBe(true);
    expect(await dashboard.queueOf('shop.mail').isPaused()).toBe(false);
    expect(faults).toEqual([]);
  });

  it('show which run takes longer than usual, links of a job, and times of half, 95 and 99 %', async () => {
    const root = { history: true, lease: { duration: '1s' } } as const;
    const before = await bootDashboard(redis, { root, handlers: { a: () => {} } });
    await before.queue.addBulk([1, 2, 3].map((data) => ({ name: 'a', data })));
    await until(async () => (await before.queue.stats()).total.processed === 3, PATIENT);
    // A process writes its counters when it stops.
    await before.app.close();
    const { gate, handlers } = gated();
    const dashboard = await bootDashboard(redis, {
      root,
      handlers: { a: handlers['active']! },
      dashboard: { access: 'public', jobLinks: { Shop: 'https://shop.example/{id}' } },
    });
    await dashboard.queue.add('a', 1, { id: 'slow' });
    const { page, faults } = await open(`${dashboard.url}workers`);
    await page
      .getByRole('row')
      .filter({ hasText: 'slow' })
      .getByText(/× as long/)
      .waitFor();
    await page.goto(`${dashboard.url}queues/work/jobs/slow`);
    const link = page.getByRole('link', { name: 'Shop' });
    expect(await link.getAttribute('href')).toBe('https://shop.example/slow');
    await page.goto(`${dashboard.url}queues/work`);
    await page.getByRole('heading', { name: 'How long 95 % take at most' }).waitFor();
    await page.getByRole('button', { name: '99 %' }).click();
    await page.getByRole('heading', { name: 'How long 99 % take at most' }).waitFor();
    await page
      .getByRole('cell', { name: / · .* · / })
      .first()
      .waitFor();
    gate.open();
    expect(faults).toEqual([]);
  });

  it('call no run long that may have ended since its process reported it', async () => {
    const dashboard = await bootDashboard(redis);
    const { page, faults } = await open(dashboard.url);
    const now = Date.now();
    const job = (id: string, ms: number) => ({ queue: 'work', id, name: 'a', attempt: 1, since: now - ms });
    const pool = { queues: ['work'], paused: [], quiet: [], concurrency: 2, workers: [], running: 2 };
    const process = {
      id: 'p',
      host: 'h',
      pid: 1,
      role: 'worker',
      state: 'running',
      morePools: 0,
      startedAt: now,
      versions: { godwit: '0.1.0', node: '20.19.0', server: null },
      pools: [{ ...pool, jobs: [job('short', 4_900), job('long', 60_000)] }],
    };
    const usual = { p50: 100, p95: 200, p99: 300 };
    await page.route('**/api/v1/workers', (route) =>
      route.fulfill({ json: { now, maxReportMs: 4_000, workers: [process], silent: [] } }),
    );
    await page.route('**/api/v1/series?*', (route) =>
      route.fulfill({ json: { isCounted: true, byQueue: { work: { runByName: { a: usual } } } } }),
    );
    await page.goto(`${dashboard.url}workers`);
    const row = (id: string) => page.getByRole('row').filter({ hasText: id });
    await row('long').getByText('280 × as long').waitFor();
    expect(await row('short').getByText('as long').count()).toBe(0);
    expect(await row('short').getByRole('cell').first().textContent()).toBe('4.9\u00a0s');
    await page.getByText('at most 4.0 s ago').waitFor();
    expect(faults).toEqual([]);
  });

  it('set a limit, change it, and go back to that of the code', async () => {
    const dashboard = await bootDashboard(redis);
    const { queue } = dashboard;
    const { page, faults } = await open(`${dashboard.url}queues/work`);
    const press = (name: string) => page.getByRole('button', { name }).click();
    await press('Limit the queue');
    await page.getByLabel('Jobs at the same time').fill('3');
    await page.getByLabel('Starts').fill('many');
    await press('Set it');
    await page.getByText('rate.max must be').waitFor();
    await page.getByLabel('Starts').fill('50');
    await page.getByLabel('in, such as').fill('1m');
    await press('Set it');
    await page.getByRole('cell', { name: '50 per minute' }).waitFor();
    expect(await queue.limits.list()).toMatchObject([{ concurrency: 3, rate: { max: 50, perMs: 60_000 } }]);
    await press('Edit the limit of the queue');
    await page.getByLabel('Jobs at the same time').fill('');
    await press('Set it');
    // The form hides the table until the limit is stored.
    await page.getByRole('button', { name: 'Edit the limit of the queue' }).waitFor();
    await page.getByText('0 of 3').waitFor({ state: 'detached' });
    expect(await queue.limits.list()).toMatchObject([{ concurrency: null, rate: { max: 50 } }]);
    await press('Edit the limit of the queue');
    expect(await page.getByLabel('in, such as').inputValue()).toBe('1m');
    await press('As in the code');
    await page.getByRole('button', { name: 'Limit the queue' }).waitFor();
    expect(await queue.limits.list()).toMatchObject([{ rate: null, isLive: false }]);
    await press('Limit a name');
    await page.getByLabel('Name of the job').fill('digest');
    await page.getByLabel('Jobs at the same time').fill('2');
    await press('Set it');
    await page.getByRole('button', { name: 'Edit the limit of name digest' }).waitFor();
    expect(await queue.limits.list()).toMatchObject([
      { of: 'queue' },
      { of: 'name', name: 'digest', concurrency: 2, isLive: true },
    ]);
    expect(faults.filter((fault) => !/400/.test(fault))).toEqual([]);
  });

  it('edit a schedule, with its next times before it is saved', async () => {
    const dashboard = await bootDashboard(redis);
    const { queue } = dashboard;
    await queue.schedules.upsert('daily', { cron: '0 7 * * *' }, { name: 'a', data: { n: 1 } });
    const { page, faults } = await open(`${dashboard.url}schedules`);
    await page.getByRole('button', { name: 'Edit daily' }).click();
    await page.getByLabel('Cron, such as').fill('61 * * * *');
    await page.getByText('rule.cron').waitFor();
    expect(await page.getByRole('button', { name: 'Save it' }).isDisabled()).toBe(true);
    await page.getByLabel('Cron, such as').fill('15 9 * * *');
    await page.getByLabel('Time zone').fill('Asia/Tokyo');
    const times = page.getByRole('region', { name: 'Schedule daily' }).getByRole('listitem');
    await times.filter({ hasText: '00:15 UTC' }).nth(4).waitFor();
    await page.getByLabel('Data of its jobs').fill('{"n": 2}');
    await page.getByRole('button', { name: 'Save it' }).click();
    await page.getByText('every day at 09:15').waitFor();
    expect(await queue.schedules.get('daily')).toMatchObject({
      rule: { cron: '15 9 * * *', tz: 'Asia/Tokyo' },
      template: { data: { n: 2 } },
    });
    expect(faults.filter((fault) => !/400/.test(fault))).toEqual([]);
  });

  it('show the jobs of a schedule, and how to let held jobs start', async () => {
    const dashboard = await bootDashboard(redis);
    const { queue } = dashboard;
    await queue.pause();
    await queue.schedules.upsert('daily', { cron: '0 7 * * *' }, { name: 'a' });
    const { id } = await queue.schedules.runNow('daily');
    await queue.limits.hold('1h');
    await queue.add('a', 1, { group: 'tenant-7' });
    await queue.group('tenant-7').set({ concurrency: 1 });
    const { page, faults } = await open(`${dashboard.url}schedules`);
    await page.getByText('History').click();
    await page.locator(`ul a[href*="${encodeURIComponent(id)}"]`).waitFor();
    await page.goto(`${dashboard.url}queues/work`);
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
    await page.getByText('held for').waitFor({ state: 'detached' });
    const group = page.getByRole('row').filter({ hasText: 'group tenant-7' });
    await group.getByRole('link', { name: '1' }).click();
    await page.getByRole('button', { name: 'Remove all waiting jobs with group tenant-7' }).waitFor();
    await page.getByText('Looked at 2 of 2 jobs, 1 match.').waitFor();
    expect(faults).toEqual([]);
  });

  it('have all acts within a screen of 360 px', async () => {
    const dashboard = await bootDashboard(redis, { handlers: { die: gated().handlers['die']! } });
    const { queue } = dashboard;
    await queue.add('die', 1, { attempts: 1 });
    await until(async () => (await queue.counts()).dead === 1, PATIENT);
    await queue.schedules.upsert('daily', { cron: '0 7 * * *' }, { name: 'a' });
    const { page, faults } = await open(dashboard.url, { viewport: { width: 360, height: 900 } });
    for (const [path, name] of [
      ['dead', 'Remove'],
      ['schedules', 'Remove'],
      ['queues', 'Pause work'],
    ] as const) {
      await page.goto(`${dashboard.url}${path}`);
      const button = page.getByRole('button', { name });
      await button.waitFor();
      const box = (await button.boundingBox())!;
      expect([path, box.x >= 0, box.x + box.width <= 360]).toEqual([path, true, true]);
    }
    // Each value has its heading in front of it, and the table is one for assistive software.
    expect(await page.getByRole('cell').first().getAttribute('data-label')).toBe('Waiting');
    expect(await page.getByRole('columnheader', { name: 'Oldest' }).count()).toBe(1);
    expect(faults).toEqual([]);
  });

  it('show hostile names, payloads, errors, logs and ids as text', async () => {
    const hostile = '<img src=x onerror="alert(1)"><script>alert(2)</script>{{7*7}}${7*7}';
    const dashboard = await bootDashboard(redis, {
      handlers: {
        '*': async (job) => {
          await job.log(hostile);
          await job.progress({ [hostile]: hostile });
          throw Object.assign(new Error(hostile), { name: hostile });
        },
      },
    });
    const { queue } = dashboard;
    const data = { [hostile]: hostile, link: 'javascript:alert(1)', ['__proto__']: { polluted: true } };
    const name = hostile.replaceAll('\n', ' ').slice(0, 200);
    await queue.add(name, data, { id: hostile, attempts: 1 });
    await queue.schedules.upsert(hostile, { every: '1h' }, { name, data });
    await until(async () => (await queue.get(hostile))?.state === 'dead', PATIENT);
    const { page, faults } = await open(`${dashboard.url}live`);
    await page.locator('.badge.good', { hasText: 'live' }).waitFor();
    const { id: again } = await queue.add(name, data, { attempts: 1 });
    await page.getByText(again).first().waitFor();
    // Events from before the new stream do not arrive.
    const filtered = page.waitForResponse((response) => response.url().includes('name=mail'));
    await page.getByLabel('Name').fill('mail');
    await page.getByLabel('Name').blur();
    await filtered;
    await page.locator('.badge.good', { hasText: 'live' }).waitFor();
    const { id: mail } = await queue.add('mail', data, { attempts: 1 });
    await page.getByText(mail).first().waitFor();
    expect(await page.getByText(again).count()).toBe(0);
    for (const [path, shown] of [
      [`queues/work/jobs/${encodeURIComponent(hostile)}`, '.failure, .notice'],
      ['queues/work/jobs?state=dead', 'td.error'],
      ['dead', 'td.error'],
      ['schedules', 'tbody th'],
      ['queues/work', 'tbody th'],
    ] as const) {
      await page.goto(`${dashboard.url}${path}`);
      await page.locator(shown, { hasText: '<img src=x' }).first().waitFor();
    }
    expect(await page.locator('img, script:not([nonce]), a[href^="javascript"]').count()).toBe(0);
    expect(
      await page.evaluate(() => ({}) as { polluted?: boolean }).then((one) => one.polluted),
    ).toBeUndefined();
    expect(faults).toEqual([]);
  });

  it('act on the job, the group or the schedule that is named `..`, and not on the queue', async () => {
    const { queue, url } = await bootDashboard(redis);
    await queue.add('a', 1, { id: '..', group: '..' });
    await queue.schedules.upsert('..', { every: '1h' }, { name: 'a' });
    const { page, faults } = await open(`${url}queues/work`);
    const edit = page.getByRole('button', { name: 'Edit the limit of group ..' });
    const row = page.getByRole('row').filter({ has: edit });
    await row.getByRole('button', { name: 'Pause' }).click();
    await row.getByRole('button', { name: 'Resume' }).waitFor();
    expect([(await queue.group('..').state()).paused, await queue.isPaused()]).toEqual([true, false]);
    await page.goto(`${url}schedules`);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect([(await queue.schedules.get('..'))?.paused, await queue.isPaused()]).toEqual([true, false]);
    await page.goto(`${url}queues/work/jobs`);
    await page.getByRole('link', { name: '..', exact: true }).click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    expect(faults).toEqual([]);
  });

  it('offer only actions that the person may do', async () => {
    const dashboard = await bootDashboard(redis, { dashboard: { authorize: () => 'viewer' } });
    await dashboard.queue.pause();
    await dashboard.queue.add('a', 1, { id: 'a' });
    const { page, faults } = await open(`${dashboard.url}queues/work/jobs/a`);
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    for (const name of ['Cancel', 'Remove', 'Edit'])
      expect(await page.getByRole('button', { name }).count()).toBe(0);
    await page.goto(`${dashboard.url}queues/work`);
    await page.getByRole('heading', { name: 'By day' }).waitFor();
    for (const name of ['Pause', 'Resume', 'Delete', 'Check'])
      expect(await page.getByRole('button', { name }).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it('refuse a change that another origin sends', async () => {
    const dashboard = await bootDashboard(redis);
    const other = await bootDashboard(redis);
    const { page } = await open(other.url.replace('127.0.0.1', 'localhost'));
    const sent = await page.evaluate(
      (url) =>
        fetch(`${url}api/v1/queues/work/pause`, { method: 'POST', mode: 'no-cors', body: '{}' }).then(
          () => 'sent',
          () => 'stopped',
        ),
      dashboard.url,
    );
    // The policy of the page stops it first. The server would refuse it too.
    expect(sent).toBe('stopped');
    expect(await dashboard.queue.isPaused()).toBe(false);
  });

  it('are worked with the keyboard', async () => {
    const dashboard = await bootDashboard(redis);
    await dashboard.queue.pause();
    await dashboard.queue.addBulk(
      [1, 2, 3].map((n) => ({ name: 'a', data: n, options: { id: `job-${n}` } })),
    );
    const { page, faults } = await open(dashboard.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.getByRole('heading', { name: 'Dead jobs' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.goto(`${dashboard.url}queues/work/jobs?state=waiting`);
    await page.getByText('job-3').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    expect(await page.getByRole('checkbox', { name: 'Select job-2' }).isChecked()).toBe(true);
    await page.keyboard.press('/');
    await page.keyboard.type('gd');
    expect(await page.getByLabel('Text in id, name or error, or filters').inputValue()).toBe('gd');
    await page.keyboard.press('Escape');
    await page.keyboard.press('t');
    expect(await page.evaluate(() => document.documentElement.dataset['theme'])).toBe('light');
    expect(faults).toEqual([]);
  });

  it('list actions by queue and actor, in pages', async () => {
    const dashboard = await bootDashboard(redis, {
      queues: ['other'],
      dashboard: { authorize: () => ({ allow: 'operator', actor: 'ada' }) },
    });
    const cron = dashboard.queueOf('other').as('cron');
    for (let at = 0; at < 100; at += 1) await cron.pause();
    const { page, faults } = await open(`${dashboard.url}queues/work`);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Pause it' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    await page.getByRole('link', { name: 'Actions' }).click();
    const row = (text: string) => page.getByRole('row').filter({ hasText: text });
    await row('queue.pause').filter({ hasText: 'ada' }).waitFor();
    await expect.poll(() => row('cron').count()).toBe(99);
    await page.getByRole('button', { name: 'Older' }).click();
    await row('ada').waitFor({ state: 'detached' });
    await expect.poll(() => row('cron').count()).toBe(1);
    const actor = page.getByLabel('Actor');
    await actor.fill('ada');
    // A read meanwhile leaves the text as it is.
    for (let at = 0; at < 2; at += 1) {
      const read = page.waitForResponse(/api\/v1\/actions/);
      await page.getByRole('button', { name: 'Reload' }).evaluate((button: HTMLElement) => button.click());
      await read;
    }
    expect(await actor.inputValue()).toBe('ada');
    await actor.press('Enter');
    await row('ada').waitFor();
    await expect.poll(() => row('queue.pause').count()).toBe(1);
    await page.getByLabel('Queue').selectOption('other');
    await page.getByText('No actions.').waitFor();
    expect(new URL(page.url()).search).toBe('?queue=other&actor=ada');
    expect(faults).toEqual([]);
  });

  it('show that Redis is away, and recover on their own', async () => {
    const dashboard = await bootDashboard(redis);
    const { page } = await open(`${dashboard.url}queues`);
    await page.getByRole('link', { name: 'work', exact: true }).waitFor();
    let isAway = true;
    await page.route('**/api/v1/**', (route) =>
      isAway
        ? route.fulfill({
            status: 503,
            json: {
              error: {
                code: 'GODWIT_REDIS_UNAVAILABLE',
                message:
                  'call: no connection in time (connect ECONNREFUSED 127.0.0.1:1); nothing was changed',
              },
            },
          })
        : route.continue(),
    );
    const why = 'The server cannot reach Redis (connect ECONNREFUSED 127.0.0.1:1).';
    await page.getByRole('alert').getByText(`The data is out of date. ${why} No data since`).waitFor();
    expect(await page.getByRole('link', { name: 'work', exact: true }).count()).toBe(1);
    await page.reload();
    await page.getByRole('alert').getByText(`There is no data yet. ${why} This page goes on`).waitFor();
    isAway = false;
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });
});
