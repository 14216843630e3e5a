import { describe, expect, it } from 'vitest';
import { collectFaults } from '#lib/options/check.js';
import { checkScheduleId, checkScheduleRule } from '#lib/schedule/check.js';

const faultsOf = (rule: unknown) => collectFaults((report) => checkScheduleRule(rule, 'rule', report)).faults;
const DAY = 86_400_000;

describe('an invalid rule is refused with a message', () => {
  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'rule must be an object, got undefined'],
    ['null', null, 'rule must be an object, got null (null)'],
    ['no timing', {}, 'rule must be an object with cron or every, got {} (object)'],
    [
      'both',
      { cron: '* * * * *', every: '1m' },
      `rule.every must be left out if cron is given, got "1m" (string)`,
    ],
    [
      'a slip of the pen',
      { corn: '* * * * *', every: '1m' },
      'rule.corn is not an option; did you mean cron?',
    ],
    ['no text', { cron: 5 }, 'rule.cron must be a string of at most 500 characters, got 5 (number)'],
    [
      'nothing in it',
      { cron: '' },
      'rule.cron must be a cron expression of 5 fields, or of 6 with seconds first (not of 1), got "" (string)',
    ],
    [
      'too few fields',
      { cron: '* * *' },
      'rule.cron must be a cron expression of 5 fields, or of 6 with seconds first (not of 3), got "* * *" (string)',
    ],
    [
      'too many',
      { cron: '0 0 0 1 1 * 2027' },
      'rule.cron must be a cron expression of 5 fields, or of 6 with seconds first (not of 7), got "0 0 0 1 1 * 2027" (string)',
    ],
    [
      'a date',
      { cron: '2027-01-01T00:00:00' },
      'rule.cron must be a cron expression of 5 fields, or of 6 with seconds first (not of 1), got "2027-01-01T00:00:00" (string)',
    ],
    [
      'a start of the machine',
      { cron: '@reboot' },
      'rule.cron must be a cron expression of 5 fields, or of 6 with seconds first (not of 1), got "@reboot" (string)',
    ],
    [
      'a day that no month has',
      { cron: '0 0 1,32 * *' },
      'rule.cron must be a cron expression that can be read (day of month 32 is not from 1 to 31), got "0 0 1,32 * *" (string)',
    ],
    [
      'a month that no year has',
      { cron: '0 0 1 */2,13 *' },
      'rule.cron must be a cron expression that can be read (month 13 is not from 1 to 12), got "0 0 1 */2,13 *" (string)',
    ],
    [
      'a minute that no hour has',
      { cron: '61 * * * *' },
      'rule.cron must be a cron expression that can be read (minute 61 is not from 0 to 59), got "61 * * * *" (string)',
    ],
    [
      'a range that goes back',
      { cron: '5-1 * * * *' },
      `rule.cron must be a cron expression that can be read (From value is larger than to value: '5-1'), got "5-1 * * * *" (string)`,
    ],
    [
      'a day that never comes',
      { cron: '0 0 30 2 *' },
      'rule.cron must be an expression that matches some date; this one never does, got "0 0 30 2 *" (string)',
    ],
    [
      'another one',
      { cron: '0 0 31 2,4 *', tz: 'Asia/Tokyo' },
      'rule.cron must be an expression that matches some date; this one never does, got "0 0 31 2,4 *" (string)',
    ],
    [
      'a zone nobody knows',
      { cron: '* * * * *', tz: 'Mars/Olympus' },
      `rule.tz must be an IANA time zone such as 'Europe/Berlin', got "Mars/Olympus" (string)`,
    ],
    [
      'an offset for a zone',
      { cron: '* * * * *', tz: '+02:00' },
      `rule.tz must be an IANA time zone such as 'Europe/Berlin', got "+02:00" (string)`,
    ],
    [
      'a zone of no name',
      { cron: '* * * * *', tz: '' },
      `rule.tz must be an IANA time zone such as 'Europe/Berlin', got "" (string)`,
    ],
    [
      'a zone of an interval',
      { every: '1h', tz: 'UTC' },
      'rule.tz must be left out if every is given: an interval has no time zone, got "UTC" (string)',
    ],
    [
      'an interval below a second',
      { every: 999 },
      'rule.every must be a duration from 1000 ms to 315576000000 ms, got 999 (number)',
    ],
    [
      'no interval',
      { every: 0 },
      'rule.every must be a duration from 1000 ms to 315576000000 ms, got 0 (number)',
    ],
    [
      'no duration',
      { every: 'soon' },
      `rule.every must be a duration in ms or like '10s', got "soon" (string)`,
    ],
    [
      'an end before the start',
      { every: '1h', startAt: 2 * DAY, endAt: DAY },
      'rule.endAt must be a moment at or after startAt, got 86400000 (number)',
    ],
    [
      'nothing between them',
      { cron: '0 7 * * *', startAt: DAY + 8 * 3_600_000, endAt: DAY + 9 * 3_600_000 },
      'rule.endAt must be late enough for one occurrence: there is none from 1970-01-02T08:00:00.000Z to 1970-01-02T09:00:00.000Z',
    ],
    [
      'no moment',
      { every: '1h', startAt: '2026-01-01' },
      'rule.startAt must be a valid Date or whole ms since 1970, got "2026-01-01" (string)',
    ],
    [
      'a moment that is none',
      { every: '1h', endAt: new Date(Number.NaN) },
      'rule.endAt must be a valid Date or whole ms since 1970, got null (Date)',
    ],
    [
      'a limit of none',
      { every: '1h', limit: 0 },
      'rule.limit must be an integer from 1 to 1000000000, got 0 (number)',
    ],
    [
      'a wild jitter',
      { every: '1h', jitter: '2d' },
      'rule.jitter must be a duration from 0 ms to 86400000 ms, got "2d" (string)',
    ],
    [
      'an overlap nobody knows',
      { every: '1h', overlap: 'queue' },
      `rule.overlap must be one of 'allow', 'skip', 'replace', got "queue" (string)`,
    ],
    [
      'a policy nobody knows',
      { every: '1h', missed: 'some' },
      `rule.missed must be one of 'skip', 'once', 'all', got "some" (string)`,
    ],
    [
      'a bound that is not used',
      { every: '1h', maxMissed: 5 },
      `rule.maxMissed must be left out unless missed is 'all', got 5 (number)`,
    ],
    [
      'a bound without bounds',
      { every: '1h', missed: 'all', maxMissed: 1001 },
      'rule.maxMissed must be an integer from 1 to 1000, got 1001 (number)',
    ],
  ])('%s', (_, rule, sentence) => {
    expect(faultsOf(rule)).toEqual([sentence]);
    expect(() => checkScheduleRule(rule, 'rule')).toThrow(sentence);
  });

  it('all of them together if faults are collected', () => {
    expect(faultsOf({ cron: '* *', every: 1, limit: -1, overlap: 'no' })).toHaveLength(5);
  });
});

it('a valid rule gets its defaults', () => {
  expect(checkScheduleRule({ cron: '0 7 * * *' }, 'rule')).toEqual({
    cron: '0 7 * * *',
    tz: 'UTC',
    jitterMs: 0,
    overlap: 'allow',
    missed: 'once',
    maxMissed: 100,
  });
  const endAt = new Date(5 * DAY);
  expect(checkScheduleRule({ every: '1h', endAt, limit: 2, jitter: '1m', missed: 'all' }, 'rule')).toEqual({
    everyMs: 3_600_000,
    endAt: 5 * DAY,
    limit: 2,
    jitterMs: 60_000,
    overlap: 'allow',
    missed: 'all',
    maxMissed: 100,
  });
});

it('an end in the past is valid: the same program runs before and after it', () => {
  expect(faultsOf({ every: '1h', endAt: DAY })).toEqual([]);
});

describe('an id', () => {
  it.each(['a', 'ü'.repeat(100), '__proto__', 'a b@c:{d}'])('may be %j', (id) => {
    expect(checkScheduleId(id, 'id')).toBe(id);
  });

  it.each([undefined, null, 5, '', 'x'.repeat(201), 'ü'.repeat(101), 'a\nb', '\ud800'])(
    'may not be %j',
    (id) => {
      expect(() => checkScheduleId(id, 'id')).toThrow(
        'id must be 1 to 200 bytes of well-formed text without control characters',
      );
    },
  );
});
