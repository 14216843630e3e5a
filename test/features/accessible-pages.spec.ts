import axe from 'axe-core';
import { describe, expect, it } from 'vitest';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { gated, oneOfEach } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const open = useBrowser();

describe.each([
  ['light', 1280],
  ['dark', 1280],
  ['light', 360],
] as const)('every page, %s, %i px wide', (colorScheme, width) => {
  it('is accessible (WCAG 2.1 AA) and does not scroll sideways', { timeout: 180_000 }, async () => {
    const { gate, handlers } = gated();
    const dashboard = await bootDashboard(redis, {
      handlers,
      dashboard: { access: 'public', environment: 'test' },
    });
    const { queue } = dashboard;
    await oneOfEach(queue);
    await queue.schedules.upsert('daily', { cron: '0 7 * * *' }, { name: 'done', data: { a: 1 } });
    await queue.schedules.pause('daily');
    await queue.as('ada@example.org').limits.set({ rate: { max: 5, per: '1s' }, concurrency: 2 });
    const { page, faults } = await open(dashboard.url, { viewport: { width, height: 900 }, colorScheme });
    for (const [path, shown] of [
      ['', 'Needs attention'],
      ['queues', 'Oldest'],
      ['queues/work', 'set at run time'],
      ['queues/work/jobs?state=waiting', 'ranked'],
      ['queues/work/jobs?state=dead&priority=%3C9&errorText=luck', 'no luck'],
      ['queues/work/jobs?state=cancelled', 'No job is cancelled'],
      ['queues/work/jobs/dead', 'Timeline'],
      ['queues/work/jobs/nobody', 'There is no such job'],
      ['find?q=work', 'Id of a job, or part of the name of a queue'],
      ['dead', 'Error: no luck'],
      ['schedules', 'daily'],
      ['workers', 'slots in use'],
      ['live', 'Events of jobs'],
      ['redis', 'Round trip'],
      ['actions', 'limit.set'],
    ] as const) {
      await page.goto(`${dashboard.url}${path}`);
      await page.getByText(shown).first().waitFor();
      await page.addScriptTag({ content: axe.source }).catch(() => page.evaluate(axe.source));
      const found = await page.evaluate(() =>
        (window as unknown as { axe: typeof axe }).axe.run({
          runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'],
        }),
      );
      expect([path, found.violations.map(({ id, nodes }) => [id, nodes[0]?.html])]).toEqual([path, []]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect([path, overflow <= 0]).toEqual([path, true]);
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll('td')]
          .filter((cell) => getComputedStyle(cell).overflowX === 'hidden')
          .filter((cell) => cell.scrollWidth > cell.clientWidth)
          .map((cell) => cell.textContent),
      );
      expect([path, cut]).toEqual([path, []]);
    }
    gate.open();
    // A missing job is answered with 404, and axe is a script without the nonce.
    expect(faults.filter((fault) => !/404|Content Security Policy/.test(fault))).toEqual([]);
  });
});
