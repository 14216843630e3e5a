import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { useBrowser } from '../support/browser.js';
import { bootDashboard } from '../support/dashboard.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const open = useBrowser();

/** The rows of the bar, from the places of its parts. */
const rowsOf = (page: Page) =>
  page.locator('header.top > *').evaluateAll((parts) => {
    const boxes = parts.map((part) => part.getBoundingClientRect()).toSorted((a, b) => a.top - b.top);
    let end = 0;
    return boxes.filter(({ top, bottom }) => {
      const isNew = top >= end - 1;
      end = isNew ? bottom : Math.max(end, bottom);
      return isNew;
    }).length;
  });

const focused = (page: Page) =>
  page.evaluate(
    () =>
      document.activeElement?.closest('label')?.innerText.split('\n')[0] ??
      document.activeElement?.textContent,
  );

it.each([
  ['short', 'Shop queues', 'production'],
  ['long', 'w'.repeat(60), 'e'.repeat(30)],
])(
  'the bar at the top takes one row, and two on a narrow screen, with %s words',
  async (_, title, environment) => {
    const { url } = await bootDashboard(redis, {
      dashboard: {
        authorize: () => ({ allow: 'admin', actor: 'a'.repeat(200) }),
        title,
        environment,
        readOnly: true,
      },
    });
    const { page, faults } = await open(url);
    await page.getByRole('link', { name: 'Actions' }).waitFor();
    for (const [width, rows] of [
      [1600, 1],
      [1200, 1],
      [1024, 1],
      [768, 2],
      [360, 2],
    ] as const) {
      await page.setViewportSize({ width, height: 800 });
      expect([width, await rowsOf(page)]).toEqual([width, rows]);
      const outside = await page
        .locator('header.top > *, .tools > button')
        .evaluateAll(
          (all) => all.filter((one) => one.getBoundingClientRect().right > window.innerWidth).length,
        );
      expect([width, outside]).toEqual([width, 0]);
      await page.getByRole('button', { name: 'Settings' }).click();
      const menu = (await page.getByRole('group', { name: 'Settings' }).boundingBox())!;
      expect([menu.x >= 0, menu.x + menu.width <= width]).toEqual([true, true]);
      await page.keyboard.press('Escape');
    }
    expect(faults).toEqual([]);
  },
);

describe('the settings', () => {
  it('are reached, left and closed with the keyboard, and the focus returns', async () => {
    const { url } = await bootDashboard(redis);
    const { page, faults } = await open(url);
    await page.getByRole('button', { name: 'Settings' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Pages load again');
    await page.keyboard.press('Escape');
    await page.getByRole('group', { name: 'Settings' }).waitFor({ state: 'hidden' });
    expect(await focused(page)).toBe('Settings');
    await page.keyboard.press('Enter');
    for (let i = 0; i < 4; i += 1) await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Shortcuts');
    await page.keyboard.press('Enter');
    const help = page.getByRole('dialog', { name: 'Shortcuts' });
    await help.waitFor();
    for (let i = 0; i < 5; i += 1) {
      await page.keyboard.press('Tab');
      const isOutside = () =>
        !document.activeElement?.closest('dialog, body') || document.activeElement.closest('header');
      expect(await page.evaluate(isOutside)).toBeFalsy();
    }
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'hidden' });
    expect(await focused(page)).toBe('Settings');
    expect(faults).toEqual([]);
  });

  it('name the person whose actions are recorded', async () => {
    const { url } = await bootDashboard(redis, {
      dashboard: { authorize: () => ({ allow: 'admin', actor: 'ada@example.org' }) },
    });
    const { page } = await open(url);
    await page.getByRole('button', { name: 'Settings' }).click();
    const actor = page.getByText('Actions are recorded as ada@example.org.');
    await actor.waitFor();
    expect(await actor.isVisible()).toBe(true);
  });
});
