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
      await page.getByText(shown).first().waitFor();
      const overflow = await overflowOf(page);
      if (overflow > 0) wide.push([path, overflow]);
    }
    expect(wide).toEqual([]);
    gate.open();
    expect(faults.filter((fault) => !/404/.test(fault))).toEqual([]);
  });
});
