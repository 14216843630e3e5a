import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { defineJob } from '#lib/job/define-job.js';
import { QueueDashboardModule } from '#lib/subpaths/dashboard.js';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const open = useBrowser();

it('a job is added like another one, with its hidden values, which are not shown', async () => {
  const dashboard = await bootDashboard(redis, { queue: { groups: { concurrency: 1 } } });
  const { queue } = dashboard;
  const data = { to: 'ada', apiToken: 's3cret' };
  await queue.add('mail', data, { id: 'a', priority: 4, attempts: 7, group: 'tenant-1' });
  const { page, faults } = await open(`${dashboard.url}queues/work/jobs/a`);
  await page.getByRole('button', { name: 'Duplicate' }).click();
  const text = page.getByLabel('Data of the new job');
  expect(await text.inputValue()).not.toContain('s3cret');
  await text.fill((await text.inputValue()).replace('ada', 'eve'));
  await page.getByLabel('Own id').fill('b');
  await page.getByRole('button', { name: 'Add it' }).click();
  await page.getByText('"eve"').waitFor();
  expect(await queue.get('b')).toMatchObject({
    name: 'mail',
    data: { to: 'eve', apiToken: 's3cret' },
    priority: 4,
    attempts: 7,
    group: 'tenant-1',
  });
  expect(faults).toEqual([]);
});

it('a copy of a job needs the right to see data, and keeps hidden values in hidden fields', async () => {
  const { api, queue } = await bootDashboard(redis, {
    dashboard: { authorize: (_, action) => action !== 'read-data' },
  });
  await queue.add('mail', { apiToken: 's3cret' }, { id: 'a' });
  const add = (body: object) => api('POST', 'queues/work/jobs', { name: 'mail', ...body });
  expect((await add({ data: '{}', like: 'a' })).status).toBe(403);
  const open = await bootDashboard(redis, { root: { prefix: redis.prefix } });
  const { body } = await open.api('GET', 'queues/work/jobs/a');
  const mark = (JSON.parse(body.data.json) as { apiToken: string }).apiToken;
  const like = (data: object, id = 'a') =>
    open.api('POST', 'queues/work/jobs', { name: 'mail', data: JSON.stringify(data), like: id });
  expect((await like({ shown: mark })).status).toBe(400);
  expect((await like({}, 'gone')).status).toBe(404);
  expect((await like({}, '')).status).toBe(400);
  expect((await queue.counts()).waiting).toBe(1);
});

it('a waiting job gets another time and another priority', async () => {
  const dashboard = await bootDashboard(redis);
  const { queue, api } = dashboard;
  await queue.add('mail', null, { id: 'a' });
  const { page, faults } = await open(`${dashboard.url}queues/work/jobs/a`);
  await page.getByRole('button', { name: 'Priority' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('7');
  await page.getByRole('button', { name: 'Set the priority' }).click();
  await until(async () => (await queue.get('a'))?.priority === 7, PATIENT);
  await page.getByRole('button', { name: 'Reschedule' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('2h');
  await page.getByRole('button', { name: 'Set the time' }).click();
  await until(async () => (await queue.get('a'))?.state === 'delayed', PATIENT);
  for (const wrong of [{}, { priority: -1 }, { priority: '3' }, { delay: 'soon' }, { data: 1 }])
    expect([wrong, (await api('POST', 'queues/work/jobs/a/move', wrong)).status]).toEqual([wrong, 400]);
  expect((await api('POST', 'queues/work/jobs/gone/move', { delay: 0 })).status).toBe(404);
  expect(faults).toEqual([]);
});

it('names of jobs are offered where a name is typed', async () => {
  const dashboard = await bootDashboard(redis, { handlers: { mail: () => null, digest: () => null } });
  const { queue } = dashboard;
  await queue.addBulk(['mail', 'digest'].map((name) => ({ name, data: null })));
  await until(async () => (await queue.stats()).total.processed === 2, PATIENT);
  const { page, faults } = await open(`${dashboard.url}queues/work/jobs`);
  await page.locator('#job-names option').nth(1).waitFor({ state: 'attached' });
  const names = await page
    .getByRole('combobox', { name: 'Name', exact: true })
    .evaluate((input) =>
      Array.from((input as HTMLInputElement).list!.options, ({ value }) => value).toSorted(),
    );
  expect(names).toEqual(['digest', 'mail']);
  expect(faults).toEqual([]);
});

it('the schema of a definition checks data that is added or edited, and its name is offered', async () => {
  const mail = defineJob('work', 'mail', z.object({ to: z.email(), copies: z.int().default(1) }));
  const dashboard = await bootDashboard(redis, { dashboard: { access: 'public', definitions: [mail] } });
  const { queue, api } = dashboard;
  const { page, faults } = await open(`${dashboard.url}queues/work/jobs`);
  await page.getByRole('button', { name: 'Add a job' }).click();
  await page.locator('#new-job-names option[value=mail]').waitFor({ state: 'attached' });
  await page.getByLabel('Name of the job').fill('mail');
  const text = page.getByLabel('its schema checks it');
  await until(async () => (await text.inputValue()) === '{\n  "to": "",\n  "copies": 1\n}', PATIENT);
  await text.fill('{"to": "nobody"}');
  await page.getByRole('button', { name: 'Add it' }).click();
  await page.getByText(/to: invalid email/i).waitFor();
  await page.getByLabel('its schema checks it').fill('{"to": "ada@example.org"}');
  await page.getByRole('button', { name: 'Add it' }).click();
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.locator('textarea').fill('{"to": 7}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/to: invalid input/i).waitFor();
  const { jobs } = await queue.jobs({ state: 'waiting' });
  expect(jobs.map(({ data }) => data)).toEqual([{ to: 'ada@example.org' }]);
  expect((await api('POST', 'queues/work/jobs', { name: 'other', data: '7' })).status).toBe(200);
  expect(faults.filter((fault) => !fault.includes('400'))).toEqual([]);
});

it('definitions are refused with a message if they are wrong', () => {
  for (const definitions of [{}, ['mail'], [{ queue: 'a b', name: 'x' }]])
    expect(() => QueueDashboardModule.forRoot({ access: 'public', definitions } as never)).toThrow(
      /definitions|queue name/,
    );
});

it('the charts of a queue show one name of its jobs', async () => {
  const root = { history: true } as const;
  const handlers = { mail: () => null, digest: () => null };
  const before = await bootDashboard(redis, { root, handlers });
  await before.queue.addBulk(['mail', 'mail', 'digest'].map((name) => ({ name, data: null })));
  await until(async () => (await before.queue.stats()).total.processed === 3, PATIENT);
  // A process writes its counters when it stops.
  await before.app.close();
  const dashboard = await bootDashboard(redis);
  const { page, faults } = await open(`${dashboard.url}queues/work`);
  await page.getByRole('heading', { name: 'Jobs per minute' }).waitFor();
  const read = page.waitForResponse((response) => response.url().includes('series?hours=1&name=digest'));
  await page
    .getByRole('row', { name: /^digest / })
    .getByRole('link', { name: 'charts' })
    .click();
  const { completed } = (await (await read).json()) as { completed: number[] };
  expect(completed.reduce((sum, one) => sum + one)).toBe(1);
  await page.getByRole('heading', { name: 'Jobs digest per minute' }).waitFor();
  await page.getByRole('heading', { name: 'How long 95 % of digest take at most' }).waitFor();
  await page.getByRole('link', { name: 'All jobs' }).click();
  await page.getByRole('heading', { name: 'Jobs per minute' }).waitFor();
  expect(faults).toEqual([]);
});

it('the charts of a queue show the jobs that ran on one host', async () => {
  const before = await bootDashboard(redis, { root: { history: true }, handlers: { mail: () => null } });
  await before.queue.addBulk(['mail', 'mail'].map((name) => ({ name, data: null })));
  await until(async () => (await before.queue.stats()).total.processed === 2, PATIENT);
  await before.app.close();
  const dashboard = await bootDashboard(redis);
  const series = async (words: string) => await dashboard.api('GET', `queues/work/series?${words}`);
  const { run, ...counts } = (await series('hours=1')).body.byHost[hostname()];
  expect(counts).toEqual({ completed: 2, failed: 0, dead: 0, lastAt: expect.any(Number) });
  expect([run.p50 > 0, run.p95 >= run.p50, counts.lastAt % 60_000]).toEqual([true, true, 0]);
  expect((await series('host=another')).body).toMatchObject({ isCounted: false, byHost: {} });
  const both = await series('host=h&name=a');
  expect([both.status, both.body.error.message]).toEqual([
    400,
    expect.stringContaining('`name` or `host`, not both'),
  ]);
  const { page, faults } = await open(`${dashboard.url}queues/work`);
  const row = page.getByRole('region', { name: 'Counters by host' }).getByRole('row', { name: hostname() });
  await row.waitFor();
  expect((await row.getByRole('cell').allTextContents()).slice(0, 3)).toEqual(['2', '0', '0']);
  await row.getByRole('link', { name: 'charts' }).click();
  await page.getByRole('heading', { name: `Jobs on ${hostname()} per minute` }).waitFor();
  await page.getByRole('heading', { name: `How long 95 % of runs on ${hostname()} take at most` }).waitFor();
  await page.getByRole('link', { name: 'All jobs' }).click();
  await page.getByRole('heading', { name: 'Jobs per minute' }).waitFor();
  expect(faults).toEqual([]);
});

it('finds a job by its id in all queues that a person may see, and queues by name', async () => {
  const dashboard = await bootDashboard(redis, {
    queues: ['mail.eu', 'mail.us', 'payroll'],
    dashboard: { authorize: (_, action, { queue }) => action === 'read' && queue !== 'payroll' },
  });
  for (const name of ['mail.us', 'payroll']) await dashboard.queueOf(name).add('x', null, { id: 'a/7' });
  const { page, faults } = await open(dashboard.url);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('heading', { name: 'Find' }).waitFor();
  await page.keyboard.type('a/7');
  await page.keyboard.press('Enter');
  const row = page.getByRole('row', { name: 'a/7' });
  await row.waitFor();
  expect(await row.count()).toBe(1);
  await row.getByRole('link').click();
  await page.getByRole('heading', { name: /^x / }).waitFor();
  await page.goto(`${dashboard.url}find?q=MAIL`);
  await page.getByRole('link', { name: 'mail.eu' }).waitFor();
  expect(await page.getByRole('link', { name: /^mail\./ }).count()).toBe(2);
  await page.goto(`${dashboard.url}find?q=nowhere`);
  await page.getByText('Nothing was found.').waitFor();
  for (const [path, status] of [
    ['find', 400],
    ['find?id=%00', 400],
    ['find?id=a%2F7', 200],
  ] as const)
    expect([path, (await dashboard.api('GET', path)).status]).toEqual([path, status]);
  expect(faults).toEqual([]);
});
