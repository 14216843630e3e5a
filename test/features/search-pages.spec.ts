import { expect, it, vi } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { JobRow } from '#lib/subpaths/dashboard/views.js';
import { useBrowser } from '../support/browser.js';
import { bootDashboard, type DashboardApp } from '../support/dashboard.js';
import { PATIENT } from '../support/queue-app.js';
import { gated } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const open = useBrowser();

const idsOf = (jobs: readonly JobRow[]) => jobs.map(({ id }) => id);
const jobsOf = async ({ api }: DashboardApp, query: string): Promise<string[]> =>
  idsOf((await api('GET', `queues/work/jobs?${query}`)).body.jobs);

/** Dead jobs with two kinds of errors, and delayed jobs with priorities. */
async function boot(): Promise<DashboardApp> {
  const dashboard = await bootDashboard(redis, {
    handlers: {
      send: ({ data }) => {
        throw new Error(String(data));
      },
    },
  });
  const { queue } = dashboard;
  await queue.add('send', 'connection timeout after 30 s', { id: 'slow', attempts: 1 });
  await queue.add('send', 'mailbox is full', { id: 'timeout-of-name', attempts: 1, priority: 9 });
  await until(async () => (await queue.counts()).dead === 2, PATIENT);
  for (const priority of [0, 1, 5, 9])
    await queue.add('send', null, { id: `p${priority}`, priority, delay: `${10 + priority}h` });
  return dashboard;
}

it('jobs are filtered by priority and by the text of their error, and the acts on all take the same jobs', async () => {
  const dashboard = await boot();
  const { api, queue } = dashboard;
  expect(await jobsOf(dashboard, 'state=delayed&priority=%3E4')).toEqual(['p5', 'p9']);
  expect(await jobsOf(dashboard, 'state=delayed&priority=1-5')).toEqual(['p1', 'p5']);
  expect(await jobsOf(dashboard, 'state=dead&errorText=Timeout')).toEqual(['slow']);
  expect(await jobsOf(dashboard, 'state=dead&contains=timeout')).toHaveLength(2);
  expect(await jobsOf(dashboard, 'state=dead&errorText=error:+mail&priority=9')).toEqual(['timeout-of-name']);
  const wrong = await api('GET', 'queues/work/jobs?state=delayed&priority=high');
  expect(wrong.status).toBe(400);
  expect(wrong.body.error.message).toContain('such as 5, >5, <=5 or 1-5');

  const start = (kind: string, filter: object) => api('POST', 'queues/work/bulk', { kind, filter });
  const { id } = (await start('remove', { state: 'delayed', priority: '>4' })).body;
  const acts = async () => (await api('GET', 'bulk')).body as { id: string; state: string; filter: string }[];
  await until(async () => (await acts()).find((act) => act.id === id)?.state === 'done', PATIENT);
  expect((await acts()).find((act) => act.id === id)!.filter).toContain('"priority":">=5"');
  expect(await jobsOf(dashboard, 'state=delayed')).toEqual(['p0', 'p1']);
  const [recorded] = (await api('GET', 'actions')).body.actions;
  expect(JSON.parse(recorded.target)).toEqual({ state: 'delayed', priority: '>4' });
  await start('remove', { state: 'dead', errorText: 'full' });
  await until(async () => (await queue.counts()).dead === 1, PATIENT);
  expect(await jobsOf(dashboard, 'state=dead')).toEqual(['slow']);
});

it('a search offers keys, states, names of jobs, and the processes of the queue', async () => {
  const { url } = await boot();
  const { page, faults } = await open(`${url}queues/work/jobs`);
  const search = page.getByLabel('Text in id, name or error, or filters');
  const offers = () =>
    page.locator('#search-words option').evaluateAll((all) => all.map((one) => one.getAttribute('value')));
  expect(await offers()).toContain('prio:');
  await search.fill('state:d');
  expect(await offers()).toEqual(['state:delayed', 'state:dead']);
  await search.fill('state:dead name:s');
  await expect.poll(offers).toEqual(['state:dead name:send']);
  await search.fill('worker:');
  await expect.poll(offers).toContainEqual(expect.stringMatching(new RegExp(`^worker:.+:${process.pid}$`)));
  expect(faults).toEqual([]);
});

it('running jobs are filtered by host, process or worker, and cancelled there only', async () => {
  const { gate, handlers } = gated();
  const dashboard = await bootDashboard(redis, { handlers });
  const { api, queue } = dashboard;
  await queue.add('active', 1, { id: 'a' });
  const list = async () => (await api('GET', 'queues/work/jobs?state=active')).body;
  // The process reports its workers a moment after it has started.
  await until(async () => (await list()).processes[(await list()).jobs[0]?.worker] !== undefined, PATIENT);
  const { jobs, processes } = await list();
  const { worker } = jobs[0];
  const place: string = processes[worker];
  expect(place).toMatch(new RegExp(`^.+:${process.pid}$`));
  const [host] = place.split(':');
  for (const one of [host, place, worker])
    expect(await jobsOf(dashboard, `state=active&worker=${one}`)).toEqual(['a']);
  expect(await jobsOf(dashboard, `state=active&worker=${host}:1`)).toEqual([]);
  const read = vi.spyOn(dashboard.app.get<QueueEngine>(QUEUE_ENGINE).processes, 'list');
  expect(await jobsOf(dashboard, `state=active&worker=${host}`)).toEqual(['a']);
  expect(read).toHaveBeenCalledTimes(1);
  expect((await api('GET', `queues/work/jobs?worker=${host}`)).body.error.message).toContain(
    "worker must be left out unless state is 'active'",
  );
  const cancel = async (where: string) => {
    const filter = { state: 'active', worker: where };
    const { id } = (await api('POST', 'queues/work/bulk', { kind: 'cancel', filter })).body;
    const act = async () => (await api('GET', 'bulk')).body.find((one: { id: string }) => one.id === id);
    await until(async () => (await act()).state === 'done', PATIENT);
    return (await act()).done;
  };
  expect(await cancel(`${host}:1`)).toBe(0);
  expect(await cancel(place)).toBe(1);
  gate.open();
});

it('a search of one line becomes filters of the address, which can be removed one by one', async () => {
  const { url } = await boot();
  const { page, faults } = await open(`${url}queues/work/jobs?state=delayed`);
  const search = page.getByLabel('Text in id, name or error, or filters');
  await search.fill('email:send');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('There is no key email. The keys are state, name,').waitFor();
  expect(new URL(page.url()).search).toBe('?state=delayed');

  await search.fill('name:send status:dead error:timeout prio:0 slow');
  await page.keyboard.press('Enter');
  await page.getByText('Looked at 2 of 2 jobs, 1 match.').waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
    state: 'dead',
    name: 'send',
    errorText: 'timeout',
    priority: '0',
    contains: 'slow',
  });
  expect(await search.inputValue()).toBe('slow');
  await page.getByRole('button', { name: 'Retry all dead jobs with name send, text slow' }).waitFor();
  await page.getByRole('link', { name: 'Remove the filter priority 0' }).click();
  await page.getByRole('link', { name: 'Remove the filter error with timeout' }).click();
  await page.getByRole('link', { name: 'Remove the filter priority 0' }).waitFor({ state: 'detached' });

  // Filters that are not in the search stay.
  await search.fill('prio:>4');
  await page.keyboard.press('Enter');
  await page.getByText('1 match.').waitFor();
  await page.getByRole('link', { name: 'timeout-of-name' }).waitFor();
  await search.fill('state:delayed older:0s newer:3h');
  await page.keyboard.press('Enter');
  await page.getByText('Looked at 4 of 4 jobs, 2 match.').waitFor();
  await page.getByRole('link', { name: 'Remove the filter age under 3h' }).click();
  await page.getByRole('link', { name: 'priority 5', exact: true }).click();
  await page.getByText('Looked at 4 of 4 jobs, 1 match.').waitFor();
  expect(new URL(page.url()).search).toBe('?state=delayed&priority=5');
  expect(faults).toEqual([]);
});

it('keys of JSON are shown in the order in which they were added or by name, and all parts open at once', async () => {
  const { queue, url } = await bootDashboard(redis);
  await queue.pause();
  await queue.add('x', { b: 1, a: { z: { y: { x: { deep: true } } } } }, { id: 'one' });
  const { page, faults } = await open(`${url}queues/work/jobs/one`);
  const keys = async () => (await page.locator('.tree .key').allTextContents()).map((key) => key[0]);
  await page.getByText('deep:').waitFor({ state: 'hidden' });
  expect(await keys()).toEqual(['b', 'a', 'z', 'y', 'x', 'd']);
  await page.getByRole('button', { name: 'Open all' }).click();
  await page.getByText('deep:').waitFor();
  await page.getByRole('button', { name: 'Sort keys' }).click();
  await page.getByRole('button', { name: 'Sort keys', pressed: true }).waitFor();
  expect(await keys()).toEqual(['a', 'z', 'y', 'x', 'd', 'b']);
  await page.getByText('deep:').waitFor();
  await page.getByRole('button', { name: 'Close all' }).click();
  await page.getByText('z:').waitFor({ state: 'hidden' });
  await page.getByText('b:').waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Sort keys', pressed: true }).waitFor();
  expect(await keys()).toEqual(['a', 'z', 'y', 'x', 'd', 'b']);
  expect(faults).toEqual([]);
});

it('the clock of the process that added a job may be ahead: it was added first, and no time is negative', async () => {
  const { gate, handlers } = gated();
  const { queue, url } = await bootDashboard(redis, { handlers });
  await queue.add('active', 1, { id: 'ahead' });
  await until(async () => (await queue.get('ahead'))?.state === 'active', PATIENT);
  const { page } = await open('about:blank');
  await page.route('**/jobs/ahead', async (route) => {
    if (!route.request().url().includes('/api/')) return route.continue();
    const answer = await route.fetch();
    const job = await answer.json();
    return route.fulfill({ response: answer, json: { ...job, createdAt: job.startedAt + 5_000 } });
  });
  await page.goto(`${url}queues/work/jobs/ahead`);
  const steps = page.locator('.timeline li');
  await steps.nth(1).waitFor();
  expect(await steps.nth(0).textContent()).toContain('Added');
  expect(await steps.nth(1).textContent()).toMatch(/Attempt 1 started.*· 0\sms later/);
  await page.goto(`${url}queues/work`);
  await page.getByText(/Its jobs and schedules take ≈\s[\d.]+ KiB of the memory of Redis/).waitFor();
  gate.open();
});

it('the list of schedules shows what became of their last jobs', async () => {
  const { handlers } = gated();
  const { app, queue, url } = await bootDashboard(redis, { handlers });
  await queue.schedules.upsert('often', { every: '1s', limit: 2 }, { name: 'die', options: { attempts: 1 } });
  await queue.schedules.upsert(
    'kept',
    { every: '1s', limit: 1 },
    { name: 'done', options: { retention: '1h' } },
  );
  await queue.schedules.upsert('gone', { every: '1s', limit: 1 }, { name: 'done' });
  await until(async () => (await queue.counts()).dead === 2, PATIENT);
  await until(async () => (await queue.schedules.history('kept'))[0]?.job?.state === 'completed', PATIENT);
  await until(async () => (await queue.schedules.history('gone'))[0]?.job === null, PATIENT);
  const read = vi.spyOn(app.get<QueueEngine>(QUEUE_ENGINE).admin, 'get');
  const { page, faults } = await open(`${url}schedules`);
  await page.getByRole('img', { name: 'Last 2 jobs: 2 dead' }).waitFor();
  expect(read.mock.calls.map(([, , isBrief]) => isBrief)).toEqual([true, true, true, true]);
  await page.getByRole('img', { name: 'Last job: 1 completed' }).waitFor();
  await page.getByRole('img', { name: 'Last job: 1 ended and not kept' }).waitFor();
  expect(faults).toEqual([]);
});

it('pages load again as often as the person has chosen, or never, and at once when the choice changes', async () => {
  const { url } = await bootDashboard(redis);
  const { page } = await open('about:blank');
  await page.clock.install();
  let reads = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/api/v1/queues/work')) reads += 1;
  });
  await page.goto(`${url}queues/work`);
  await page.getByRole('button', { name: 'Settings' }).click();
  const time = () => page.evaluate(() => Date.now());
  /** After how many ms of the clock of the page it has read three times; undefined: not within two minutes. */
  const paceOf = async (choice: string) => {
    const [before, start] = [reads, await time()];
    await page.getByLabel('Pages load again').selectOption(choice);
    for (let step = 0; step < 240; step += 1) {
      await page.clock.runFor(500);
      if (reads >= before + 3) return (await time()) - start;
    }
    return undefined;
  };
  // The first read is at once. One of the choice before may still be on its way.
  expect(await paceOf('every 15 seconds')).toBeGreaterThan(14_000);
  expect(await paceOf('every second')).toBeLessThan(14_000);
  expect(await paceOf('when I reload')).toBeUndefined();
});
