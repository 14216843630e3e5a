import { describe, expect, it } from 'vitest';
import { checkScheduleRule } from '#lib/schedule/check.js';
import { lastBetween, nextAfter, nextTimes } from '#lib/schedule/times.js';

const ruleOf = (rule: object) => checkScheduleRule(rule, 'rule')!;
const at = (text: string) => Date.parse(text);
const next = (rule: object, from: string, count = 3) =>
  nextTimes(ruleOf(rule), count, at(from)).map((ms) => new Date(ms).toISOString().replace('.000', ''));
const last = (rule: object, from: string, upTo: string) =>
  lastBetween(ruleOf(rule), 100, at(from), at(upTo)).map((ms) =>
    new Date(ms).toISOString().replace('.000', ''),
  );

describe('cron', () => {
  it('has five fields, or six with seconds first, and names', () => {
    expect(next({ cron: '0 7 * * MON-FRI' }, '2026-01-02T07:00:00Z')).toEqual([
      '2026-01-05T07:00:00Z',
      '2026-01-06T07:00:00Z',
      '2026-01-07T07:00:00Z',
    ]);
    expect(next({ cron: '*/20 59 23 31 DEC *' }, '2026-06-01T00:00:00Z')).toEqual([
      '2026-12-31T23:59:00Z',
      '2026-12-31T23:59:20Z',
      '2026-12-31T23:59:40Z',
    ]);
    expect(next({ cron: '@monthly' }, '2026-01-31T00:00:00Z', 2)).toEqual([
      '2026-02-01T00:00:00Z',
      '2026-03-01T00:00:00Z',
    ]);
  });

  it('accepts a first value with a step, as in Quartz', () => {
    const from = '2026-01-01T00:00:00Z';
    for (const [quartz, cron] of [
      ['5/20 * * * *', '5-59/20 * * * *'],
      ['0/30 0 9/6 1,10/10 2/5 1/2', '0-59/30 0 9-23/6 1,10-31/10 2-12/5 1-6/2'],
    ])
      expect(next({ cron: quartz }, from, 20)).toEqual(next({ cron }, from, 20));
    expect(next({ cron: '0/20 * * * *' }, from, 2)).toEqual(['2026-01-01T00:20:00Z', '2026-01-01T00:40:00Z']);
  });

  it('uses UTC by default, whatever the zone of the process', () => {
    expect(next({ cron: '0 12 * * *' }, '2026-07-01T00:00:00Z', 1)).toEqual(['2026-07-01T12:00:00Z']);
    expect(next({ cron: '0 12 * * *', tz: 'Asia/Kolkata' }, '2026-07-01T00:00:00Z', 1)).toEqual([
      '2026-07-01T06:30:00Z',
    ]);
  });

  it('is after the moment asked for, not at it, to the millisecond', () => {
    const rule = ruleOf({ cron: '* * * * * *' });
    const second = at('2026-01-01T00:00:05Z');
    expect(nextAfter(rule, second)).toBe(second + 1_000);
    expect(nextAfter(rule, second - 1)).toBe(second);
    expect(lastBetween(rule, 1, 0, second)).toEqual([second]);
    expect(lastBetween(rule, 1, 0, second - 1)).toEqual([second - 1_000]);
  });

  it('finds rare times, and returns null if there are no more', () => {
    expect(next({ cron: '0 0 29 2 *' }, '2026-01-01T00:00:00Z', 2)).toEqual([
      '2028-02-29T00:00:00Z',
      '2032-02-29T00:00:00Z',
    ]);
    expect(nextAfter(ruleOf({ cron: '* * * * *' }), 8_640_000_000_000_000)).toBeNull();
    expect(nextAfter(ruleOf({ every: '10y' }), 8_640_000_000_000_000)).toBeNull();
  });
});

/**
 * Zones whose clock goes forward and back: the change in spring, the change in autumn, and wall times that are
 * skipped or come twice.
 */
const ZONES = [
  {
    tz: 'Europe/Berlin',
    gap: {
      cron: '30 2 * * *',
      day: '2026-03-28T12:00:00Z',
      is: '2026-03-29T01:00:00Z',
      next: '2026-03-30T00:30:00Z',
    },
    twice: {
      cron: '30 2 * * *',
      day: '2026-10-24T12:00:00Z',
      is: '2026-10-25T00:30:00Z',
      next: '2026-10-26T01:30:00Z',
    },
  },
  {
    tz: 'America/New_York',
    gap: {
      cron: '30 2 * * *',
      day: '2026-03-07T12:00:00Z',
      is: '2026-03-08T07:00:00Z',
      next: '2026-03-09T06:30:00Z',
    },
    twice: {
      cron: '30 1 * * *',
      day: '2026-10-31T12:00:00Z',
      is: '2026-11-01T05:30:00Z',
      next: '2026-11-02T06:30:00Z',
    },
  },
  {
    // By half an hour.
    tz: 'Australia/Lord_Howe',
    gap: {
      cron: '15 2 * * *',
      day: '2026-10-03T00:00:00Z',
      is: '2026-10-03T15:30:00Z',
      next: '2026-10-04T15:15:00Z',
    },
    twice: {
      cron: '45 1 * * *',
      day: '2026-04-04T00:00:00Z',
      is: '2026-04-04T14:45:00Z',
      next: '2026-04-05T15:15:00Z',
    },
  },
];

describe.each(ZONES)('when the clock of $tz changes', ({ tz, gap, twice }) => {
  it('a fixed time in the gap occurs once, at the first moment after it', () => {
    expect(next({ cron: gap.cron, tz }, gap.day, 2)).toEqual([gap.is, gap.next]);
    expect(last({ cron: gap.cron, tz }, gap.day, gap.next)).toEqual([gap.is, gap.next]);
  });

  it('a fixed time that occurs twice runs once, the first time', () => {
    expect(next({ cron: twice.cron, tz }, twice.day, 2)).toEqual([twice.is, twice.next]);
    expect(next({ cron: twice.cron, tz }, twice.is, 1)).toEqual([twice.next]);
    expect(last({ cron: twice.cron, tz }, twice.day, twice.next)).toEqual([twice.is, twice.next]);
  });

  it('repeated times follow the real time', () => {
    const rule = { cron: '*/15 * * * *', tz };
    for (const { is } of [gap, twice]) {
      const from = new Date(at(is) - 3 * 3_600_000).toISOString();
      const to = new Date(at(is) + 3 * 3_600_000).toISOString();
      const quarters = Array.from({ length: 24 }, (_, i) => at(from) + (i + 1) * 900_000);
      expect(nextTimes(ruleOf(rule), 24, at(from))).toEqual(quarters);
      expect(lastBetween(ruleOf(rule), 24, at(from), at(to))).toEqual(quarters);
    }
  });

  it('looking back finds what looking forward finds', () => {
    const crons = [
      '0,30 1,2,3 * * *',
      '*/10 2 * * *',
      '30 2 * * SUN',
      '0 0 1-3 * * *',
      '15 */3 * * *',
      '0 * * * *',
    ];
    for (const cron of crons) {
      for (const { is } of [gap, twice]) {
        const rule = ruleOf({ cron, tz });
        const from = at(is) - 2 * 86_400_000;
        const upTo = at(is) + 2 * 86_400_000;
        const forward = nextTimes(rule, 200, from - 1).filter((ms) => ms <= upTo);
        expect(lastBetween(rule, 200, from, upTo)).toEqual(forward);
        expect(new Set(forward).size).toBe(forward.length);
      }
    }
  });
});

it('two fixed times that fall into one gap are one occurrence', () => {
  const rule = { cron: '0,30 2 * * *', tz: 'Europe/Berlin' };
  expect(next(rule, '2026-03-28T12:00:00Z')).toEqual([
    '2026-03-29T01:00:00Z',
    '2026-03-30T00:00:00Z',
    '2026-03-30T00:30:00Z',
  ]);
});

describe('every', () => {
  it('is counted from 1970, so that all processes have the same times', () => {
    expect(next({ every: '5m' }, '2026-01-01T00:01:01.234Z', 2)).toEqual([
      '2026-01-01T00:05:00Z',
      '2026-01-01T00:10:00Z',
    ]);
    expect(nextAfter(ruleOf({ every: 1_500 }), 3_000)).toBe(4_500);
    expect(nextAfter(ruleOf({ every: 1_500 }), 2_999)).toBe(3_000);
  });

  it('is counted from startAt if there is one, and begins there', () => {
    const startAt = at('2026-01-01T00:00:07Z');
    const rule = { every: '1m', startAt: new Date(startAt) };
    expect(next(rule, '2025-06-01T00:00:00Z', 2)).toEqual(['2026-01-01T00:00:07Z', '2026-01-01T00:01:07Z']);
    expect(next(rule, '2026-01-01T05:00:00Z', 1)).toEqual(['2026-01-01T05:00:07Z']);
  });

  it('looks back without counting all of it', () => {
    const rule = ruleOf({ every: '1s' });
    expect(lastBetween(rule, 2, 0, 1_800_000_000_500)).toEqual([1_799_999_999_000, 1_800_000_000_000]);
    expect(lastBetween(rule, 10, 5_000, 6_999)).toEqual([5_000, 6_000]);
    expect(lastBetween(rule, 10, 6_001, 6_999)).toEqual([]);
  });
});

describe('startAt and endAt', () => {
  it('are included', () => {
    const startAt = at('2026-01-02T07:00:00Z');
    const rule = { cron: '0 7 * * *', startAt, endAt: at('2026-01-03T07:00:00Z') };
    expect(next(rule, '2025-01-01T00:00:00Z', 5)).toEqual(['2026-01-02T07:00:00Z', '2026-01-03T07:00:00Z']);
    expect(last(rule, '2025-01-01T00:00:00Z', '2026-06-01T00:00:00Z')).toEqual([
      '2026-01-02T07:00:00Z',
      '2026-01-03T07:00:00Z',
    ]);
    expect(nextAfter(ruleOf({ every: '1h', startAt, endAt: startAt }), 0)).toBe(startAt);
    expect(nextAfter(ruleOf({ every: '1h', startAt, endAt: startAt }), startAt)).toBeNull();
  });
});
