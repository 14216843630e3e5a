import { expect, it } from 'vitest';
import { countedBetween } from '#lib/contract/stats.js';
import { NO_STATE } from '#lib/subpaths/alerts/alert-state.js';
import { measure, type AlertSource } from '#lib/subpaths/alerts/measure.js';
import { checkAlertsOptions } from '#lib/subpaths/alerts/queue-alerts.js';

const day = (date: string, dead: number, processed = 0) => ({ date, processed, failed: dead, dead });
const FIRST = [day('2026-03-01', 5, 100), day('2026-02-28', 7, 200)];

it('compares each day with itself, also over midnight', () => {
  expect(countedBetween(FIRST, [day('2026-03-01', 6, 110), day('2026-02-28', 7, 201)])).toEqual({
    processed: 11,
    failed: 1,
    dead: 1,
  });
  expect(countedBetween(FIRST, [day('2026-03-02', 2, 1), day('2026-03-01', 6, 103)])).toEqual({
    processed: 4,
    failed: 3,
    dead: 3,
  });
});

it('is unknown after the queue was deleted, after two days, and if the clock was set back', () => {
  expect(countedBetween(FIRST, [day('2026-03-01', 0), day('2026-02-28', 0)])).toBeNull();
  expect(countedBetween(FIRST, [day('2026-03-03', 900), day('2026-03-02', 900)])).toBeNull();
  expect(countedBetween(FIRST, [day('2026-02-28', 900), day('2026-02-27', 900)])).toBeNull();
});

it('keeps deadRate and failureRatio over midnight', async () => {
  const midnight = Date.UTC(2026, 2, 2);
  let now = midnight - 90_000;
  let days = [day('2026-03-01', 5, 100), day('2026-02-28', 7_000, 20_000)];
  const source = {
    inspector: {
      readableQueues: async () => ({ queues: [{ name: 'work', counts: {} }], faults: new Map() }),
      workers: async () => [],
    },
    engine: { now: () => now, admin: { stats: async () => ({ days }) } },
  } as unknown as AlertSource;
  const { rules } = checkAlertsOptions(
    {
      rules: [
        { rule: 'deadRate', limit: 0 },
        { rule: 'failureRatio', limit: 0, min: 1 },
      ],
      notify: () => undefined,
    },
    'createAlerts()',
  );
  // An earlier version stored the sum of the days.
  let counters = {
    work: [{ at: now - 60_000, processed: 1, failed: 1, dead: 1 }],
  } as unknown as typeof NO_STATE.counters;
  const look = async () => {
    const found = await measure(source, rules, counters);
    counters = JSON.parse(JSON.stringify(found.counters)) as typeof counters;
    return found.readings.map(({ value }) => value);
  };
  expect(await look()).toEqual([0, 0]);
  now += 60_000;
  days = [day('2026-03-01', 9, 104), day('2026-02-28', 7_000, 20_000)];
  expect(await look()).toEqual([4, 0.5]);
  now += 60_000;
  days = [day('2026-03-02', 0), day('2026-03-01', 9, 104)];
  expect(await look()).toEqual([4, 0.5]);
  now += 60_000;
  days = [day('2026-03-02', 1, 1), day('2026-03-01', 9, 106)];
  expect(await look()).toEqual([5, 5 / 12]);
});
