import { expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import { attentionOf } from '#lib/subpaths/dashboard/overview.js';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { PATIENT, processorOf } from '../support/queue-app.js';
import { gated } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const open = useBrowser();

const bad = () => {
  throw new UnrecoverableError('no stock');
};

it('the overview names groups that dead jobs stop first, and the page of the queue leads to the dead job', async () => {
  const dashboard = await bootDashboard(redis, {
    handlers: { ship: ({ data }) => (data === 'bad' ? bad() : null) },
    queue: { groups: { order: 'strict', onDead: 'block' } },
  });
  const { queue } = dashboard;
  // Kept, or the page may find that the job is gone when it reads it again: a 404 in the log of the browser.
  await queue.add('ship', 'bad', { id: 'b-1', group: 'beta', retention: '1h' });
  for (const group of ['alpha', 'beta']) await queue.add('ship', 'good', { group });
  await until(async () => (await queue.counts()).dead + (await queue.counts()).waiting === 2, PATIENT);
  const { body } = await dashboard.api('GET', 'overview');
  expect(body.attention.find((one: any) => one.queue === 'work')).toEqual({
    level: 'bad',
    queue: 'work',
    page: 'queue',
    text: 'Group "beta" is stopped by its dead job b-1, and 1 job waits in it. Retry or remove these jobs.',
  });
  const { page, faults } = await open(dashboard.url);
  await page.getByText('Group "beta" is stopped').click();
  const row = page.getByRole('row', { name: 'group beta' });
  await row.getByText('stopped').waitFor();
  await row.getByRole('link', { name: 'b-1' }).click();
  await page.getByRole('button', { name: 'Edit and retry' }).click();
  await page.locator('textarea').fill('"good"');
  await page.getByRole('button', { name: 'Save and retry' }).click();
  await until(async () => {
    const { waiting, active } = await queue.counts();
    return waiting + active === 0;
  }, PATIENT);
  expect((await queue.counts()).dead).toBe(0);
  expect(faults).toEqual([]);
});

it('a question about a pause is answered with Enter, and one about a deletion needs another key', async () => {
  const dashboard = await bootDashboard(redis);
  const { queue } = dashboard;
  await queue.add('a', 1, { id: 'a', delay: '1h' });
  const { page, faults } = await open(`${dashboard.url}queues/work`);
  await page.getByRole('button', { name: 'Pause' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Pause work?' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('work is paused.').waitFor();
  expect(await queue.isPaused()).toBe(true);
  await page.goto(`${dashboard.url}queues/work/jobs/a`);
  await page.getByRole('button', { name: 'Remove' }).focus();
  await page.keyboard.press('Enter');
  const question = page.getByRole('dialog', { name: 'Remove this job?' });
  await question.waitFor();
  await page.keyboard.press('Enter');
  await question.waitFor({ state: 'hidden' });
  expect(await queue.get('a')).not.toBeNull();
  expect(faults).toEqual([]);
});

it('the page of processes has only buttons that the person may use, and a page without the right names it', async () => {
  const { gate, handlers } = gated();
  const dashboard = await bootDashboard(redis, {
    queues: ['mail'],
    providers: [processorOf(['work', 'mail'], { active: handlers['active']! })],
    dashboard: {
      authorize: (_request, action, { queue }) => (queue === 'mail' ? 'viewer' : action !== 'read-actions'),
    },
  });
  for (const queue of ['work', 'mail'])
    await dashboard.queueOf(queue).add('active', 1, { id: `in-${queue}` });
  const { page, faults } = await open(`${dashboard.url}workers`);
  const row = (id: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name: id }) });
  await row('in-work').getByRole('button', { name: 'Cancel' }).waitFor();
  await row('in-mail').waitFor();
  expect(await page.locator('main').getByRole('button').allTextContents()).toEqual(['Cancel']);
  expect(faults).toEqual([]);
  await page.goto(`${dashboard.url}actions`);
  await page.getByText('It needs the right read-actions.').waitFor();
  gate.open();
});

it('a group is found by its name and changed, however many there are', async () => {
  const dashboard = await bootDashboard(redis, { queue: { groups: { concurrency: 1 } } });
  const { queue } = dashboard;
  await queue.addBulk(
    Array.from({ length: 700 }, (_, i) => ({ name: 'x', data: null, options: { group: `tenant-${i}` } })),
  );
  const { page, faults } = await open(`${dashboard.url}queues/work`);
  await page.getByText('not all groups are shown').waitFor();
  await page.getByLabel('Name of a group').fill('tenant-377');
  await page.keyboard.press('Enter');
  await page.getByRole('row', { name: 'group tenant-377' }).waitFor();
  await page.getByRole('row', { name: 'group tenant-1', exact: true }).waitFor({ state: 'detached' });
  expect(new URL(page.url()).search).toBe('?group=tenant-377');
  await page.getByRole('button', { name: 'Edit the limit of group tenant-377' }).click();
  await page.getByLabel('Jobs at the same time').fill('4');
  await page.getByRole('button', { name: 'Set it' }).click();
  await page.getByText('0 of 4').waitFor();
  expect(await queue.group('tenant-377').state()).toMatchObject({ concurrency: 4, waiting: 1 });
  await page.setViewportSize({ width: 360, height: 700 });
  const isInCard = (button: Element) =>
    button.getBoundingClientRect().right < button.closest('.card')!.getBoundingClientRect().right;
  expect(await page.getByRole('button', { name: 'All groups' }).evaluate(isInCard)).toBe(true);
  await page.getByRole('button', { name: 'All groups' }).click();
  await page.getByText('not all groups are shown').waitFor();
  expect(faults).toEqual([]);
});

it('a search goes on by itself until a job matches, and stops on request', async () => {
  const dashboard = await bootDashboard(redis);
  const { queue } = dashboard;
  for (let at = 0; at < 25_000; at += 1_000)
    await queue.addBulk(Array.from({ length: 1_000 }, (_, i) => ({ name: 'x', data: { order: at + i } })));
  const { page, faults } = await open(`${dashboard.url}queues/work/jobs?where=order%3D24500`);
  await page.getByText('Looked at 10,000 of 25,000 jobs, 0 match.').waitFor();
  await page.getByRole('link', { name: 'Search on' }).click();
  await page.getByText('Looked at 25,000 of 25,000 jobs, 1 match.').waitFor();
  expect(await page.locator('tbody tr').count()).toBe(1);
  await page.goBack();
  await page.getByText('Looked at 10,000 of 25,000 jobs, 0 match.').waitFor();
  await page.goto(`${dashboard.url}queues/work/jobs?where=order%3D24501`);

  // The answer comes only after the search was stopped.
  let go = () => {};
  const isStopped = new Promise<void>((resolve) => (go = resolve));
  await page.route('**/jobs?*cursor=*', async (route) => {
    await isStopped;
    await route.continue();
  });
  await page.getByRole('link', { name: 'Search on' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  go();
  await page.getByText('Looked at 20,000 of 25,000 jobs, 0 match.').waitFor();
  await page.getByRole('link', { name: 'Search on' }).waitFor();
  expect(faults).toEqual([]);
});

it('the page of dead jobs shows that an act takes more than it has counted', async () => {
  const dashboard = await bootDashboard(redis, {
    handlers: { pay: bad },
    root: { log: { failures: false, deaths: false } },
  });
  const { queue } = dashboard;
  for (let i = 0; i < 3; i++)
    await queue.addBulk(Array.from({ length: 700 }, () => ({ name: 'pay', data: null })));
  await until(async () => (await queue.counts()).dead === 2_100, { ...PATIENT, timeout: 60_000 });
  const { page, faults } = await open(`${dashboard.url}dead`);
  await page.getByText('2,000+').waitFor();
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByText('also those that are not counted here').waitFor();
  expect(faults).toEqual([]);
});

const factsOf = (view: any) => ({
  view,
  silent: 0,
  late: [],
  slow: { unhandled: [], pausedSchedules: [], refused: null },
  full: [],
  stopped: null,
});

it('a queue whose only jobs are those of a lost process is not said to have 0 waiting jobs', () => {
  const view: any = {
    name: 'work',
    counts: { waiting: 0, active: 1, dead: 0 },
    today: { dead: 0 },
    consumers: 0,
  };
  const [first] = attentionOf([factsOf(view)], { workers: [], silent: [] }, [], [], 1_000);
  expect(first!.text).toBe('No process works on it, and it has 1 running job, whose process is gone.');
});

it('the page Redis names the right that a person who sees a queue lacks', async () => {
  const dashboard = {
    authorize: (_: unknown, __: unknown, { queue }: { queue?: string }) => queue === 'work',
  };
  const { url } = await bootDashboard(redis, { dashboard });
  const { page } = await open(`${url}redis`);
  const text = await page.getByText('It needs the right').textContent();
  expect(text).toBe('It needs the right to see the server.');
});

it('versions of processes are compared only among those of the queues that the person may see', () => {
  const process = (queue: string, godwit: string): any => ({
    pools: [{ queues: [queue] }],
    versions: { godwit },
    blockedMs: 0,
  });
  const view: any = { name: 'work', counts: { waiting: 0, active: 0, dead: 0 }, today: { dead: 0 } };
  const found = (queue: string) => {
    const workers = [process('work', '1.0.0'), process(queue, '2.0.0')];
    return attentionOf([factsOf(view)], { workers, silent: [] }, [], [], 1_000).map(({ text }) => text);
  };
  expect(found('secret')).toEqual([]);
  expect(found('work')).toEqual(['Processes run different versions of Godwit: 1.0.0, 2.0.0.']);
});

it('a hold of a shared limit names the queues that it holds back, if the person may see them', () => {
  const hold: any = {
    field: 's:openai',
    breaker: null,
    blockedForMs: 60_000,
    users: ['work', 'secret', 'work'],
  };
  const view: any = { name: 'work', counts: { waiting: 0, active: 0, dead: 0 }, today: { dead: 0 } };
  const limits = [{ queue: '', limits: [hold], groups: { ready: 0, resting: 0, stopped: 0 } }];
  const [first] = attentionOf([factsOf(view)], { workers: [], silent: [] }, limits, [], 1_000);
  expect(first!.text).toBe(
    'No job of the shared limit "openai" (used by work) starts for 1 min more: it is held.',
  );
  expect(first).toMatchObject({ queue: 'work', page: 'queue' });
});

it('a hold of a shared limit is released on the page of a queue that uses it', async () => {
  const { queue, url } = await bootDashboard(redis, {
    root: { limits: { openai: { concurrency: 1 } } },
    queue: { uses: ['openai'] },
  });
  const shared = queue.limits.shared('openai');
  await shared.set({ concurrency: 2 });
  await shared.hold('1h');
  const { page, faults } = await open(`${url}queues/work`);
  const row = page.getByRole('row').filter({ hasText: 'shared limit openai' });
  await row.getByText('held for').waitFor();
  await row.getByRole('button', { name: 'Release' }).click();
  await page.getByText('Jobs of all queues that use it start at once').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
  await row.getByText('held for').waitFor({ state: 'detached' });
  expect((await shared.state())!.heldForMs).toBe(0);
  expect(faults).toEqual([]);
});

it('the form for a group sets how many of its jobs may wait, and its weight', async () => {
  const { queue, url } = await bootDashboard(redis);
  const group = queue.group('tenant-7');
  await group.set({ concurrency: 4 });
  const { page, faults } = await open(`${url}queues/work`);
  const edit = page.getByRole('button', { name: 'Edit the limit of group tenant-7' });
  const [size, weight] = [page.getByLabel('Jobs that may wait'), page.getByLabel('Weight')];
  const save = async () => {
    await page.getByRole('button', { name: 'Set it' }).click();
    await edit.waitFor();
  };
  await edit.press('Enter');
  await page.locator('label', { hasText: 'Jobs at the same time' }).locator('input:focus').waitFor();
  expect(await weight.inputValue()).toBe('1');
  await size.fill('500');
  await weight.fill('2.5');
  await save();
  expect(await group.state()).toMatchObject({ concurrency: 4, maxSize: 500, weight: 2.5 });
  // The form shows what the page has read.
  await page.getByText('0 of 500').waitFor();
  await edit.click();
  await size.fill('');
  await weight.fill('');
  await save();
  expect(await group.state()).toMatchObject({ concurrency: 4, maxSize: null, weight: 1 });
  await page.getByRole('button', { name: 'Limit the queue' }).click();
  await page.getByLabel('Jobs at the same time').waitFor();
  expect([await size.count(), await weight.count()]).toEqual([0, 0]);
  expect(faults).toEqual([]);
});

it('the form for a paused group clears its limits only with the right to resume it', async () => {
  const { queue, url } = await bootDashboard(redis, {
    dashboard: { authorize: (_request, action) => action !== 'queue.pause' },
  });
  await queue.group('paused').set({ concurrency: 4, paused: true });
  await queue.group('other').set({ concurrency: 4 });
  const { page, faults } = await open(`${url}queues/work`);
  const clear = page.getByRole('button', { name: 'As in the code' });
  await page.getByRole('button', { name: 'Edit the limit of group other' }).click();
  await clear.waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Edit the limit of group paused' }).click();
  await page.getByRole('button', { name: 'Set it' }).waitFor();
  expect(await clear.count()).toBe(0);
  expect(faults).toEqual([]);
});

it('an act that was told to stop is shown as stopping until it has stopped', async () => {
  const { queue, url } = await bootDashboard(redis);
  await queue.addBulk([1, 2].map((data) => ({ name: 'a', data })));
  await queue.bulkActs.start('remove', { state: 'waiting' }, { rate: { max: 1, per: '1h' } });
  const { page, faults } = await open(url);
  let stoppedBy: string | null = null;
  await page.route('**/api/v1/bulk', async (route) => {
    const [one] = (await (await route.fetch()).json()) as object[];
    await route.fulfill({ json: [{ ...one, stoppedBy }] });
  });
  await page.goto(`${url}actions`);
  const stop = page.getByRole('button', { name: 'Stop', exact: true });
  await page.getByText('running', { exact: true }).waitFor();
  expect(await stop.count()).toBe(1);
  stoppedBy = 'ada';
  await page.getByText('stopping', { exact: true }).waitFor();
  expect(await stop.count()).toBe(0);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  expect(faults).toEqual([]);
});

it('the button that clears the limits of a paused group says that it also resumes it', async () => {
  const { queue, url } = await bootDashboard(redis);
  await queue.group('paused').set({ concurrency: 4, paused: true });
  const { page, faults } = await open(`${url}queues/work`);
  await page.getByRole('button', { name: 'Edit the limit of group paused' }).click();
  await page.getByRole('button', { name: 'As in the code, and resume', exact: true }).click();
  await page.getByText('The limit of the code counts again, and the group is resumed.').waitFor();
  expect((await queue.group('paused').state()).paused).toBe(false);
  expect(faults).toEqual([]);
});

it('a group whose name begins and ends with a space is found, and so are its jobs', async () => {
  const { queue, url } = await bootDashboard(redis);
  await queue.add('a', null, { id: 'in', group: ' a ' });
  await queue.add('a', null, { id: 'out', group: 'a' });
  const { page, faults } = await open(`${url}queues/work`);
  await page.getByLabel('Name of a group').fill(' a ');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByRole('button', { name: 'All groups' }).waitFor();
  const found = page.getByRole('region', { name: 'Limits' }).getByRole('rowheader');
  await until(async () => (await found.count()) === 1, PATIENT);
  expect(await found.textContent()).toContain('group  a ');
  await page.getByRole('link', { name: '1', exact: true }).last().click();
  await page.getByRole('link', { name: 'in', exact: true }).waitFor();
  await page.getByLabel('Name', { exact: true }).fill('a');
  await page.getByLabel('Name', { exact: true }).press('Enter');
  await page.waitForURL(/name=a/);
  expect(new URL(page.url()).searchParams.get('group')).toBe(' a ');
  expect(await page.getByRole('link', { name: 'out', exact: true }).count()).toBe(0);
  expect(faults).toEqual([]);
});

it('the overview shows items of all kinds first, and queues in the order of their numbers', async () => {
  const queues = Array.from({ length: 12 }, (_, i) => `shop.${i}`);
  const { queueOf, queue, url } = await bootDashboard(redis, { queues });
  for (const name of queues) await queueOf(name).add('a', null);
  await queue.pause();
  const { page, faults } = await open(url);
  const items = page.locator('.attention').first().getByRole('listitem');
  await items.filter({ hasText: 'work It is paused.' }).waitFor();
  expect(await items.filter({ hasText: 'No process works on it' }).count()).toBe(4);
  await page.getByText('8 more').waitFor();
  const names = await page.getByRole('rowheader').getByRole('link').allInnerTexts();
  expect(names.filter((name) => name.startsWith('shop'))).toEqual(queues);
  expect(faults).toEqual([]);
});

it('the page of schedules shows the days of a rule in words', async () => {
  const { queue, url } = await bootDashboard(redis);
  const rules = { a: '0 7 * * 1-5', b: '30 18 * * sun,WED', c: '0 7 * * */2' };
  for (const [id, cron] of Object.entries(rules)) await queue.schedules.upsert(id, { cron }, { name: 'job' });
  const { page, faults } = await open(`${url}schedules`);
  await page.getByText('Monday to Friday at 07:00 · 0 7 * * 1-5 (UTC)').waitFor();
  await page.getByText('Sunday and Wednesday at 18:30 · 30 18 * * sun,WED (UTC)').waitFor();
  await page.getByRole('cell', { name: '0 7 * * */2 (UTC)', exact: true }).waitFor();
  expect(faults).toEqual([]);
});
