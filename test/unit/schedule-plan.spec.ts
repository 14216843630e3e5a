import { describe, expect, it } from 'vitest';
import { checkScheduleRule } from '#lib/schedule/check.js';
import { occurrence, planFiring } from '#lib/schedule/schedule-timer.js';
import { isSameTiming, makeSchedule, readRecord } from '#lib/schedule/record.js';
import { decodeBody } from '#lib/job/job-record.js';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const T0 = Date.UTC(2026, 0, 1);
const hours = (...counts: number[]) => counts.map((count) => T0 + count * HOUR);
/** The plan of an hourly schedule that is due at T0, when it is this late. */
const plan = (rule: object, lateMs: number, room = 500) =>
  planFiring(checkScheduleRule({ every: '1h', ...rule }, 'rule')!, T0, T0 + lateMs, room);

describe('what is on time', () => {
  it.each(['skip', 'once', 'all'] as const)('adds its job, with missed: %s', (missed) => {
    for (const late of [0, 1, 60_000]) {
      expect(plan({ missed }, late)).toEqual({ occurrences: [T0], nextAt: T0 + HOUR });
    }
  });

  it('is on time until the one after it, and for a minute at most', () => {
    const rule = { missed: 'skip' } as const;
    expect(plan(rule, 60_001)).toEqual({ occurrences: [], nextAt: T0 + HOUR });
    expect(plan({ ...rule, every: '10s' }, 9_999)).toEqual({ occurrences: [T0], nextAt: T0 + 10_000 });
    // Then the occurrence after it is next.
    expect(plan({ ...rule, every: '10s' }, 10_000)).toEqual({
      occurrences: [T0 + 10_000],
      nextAt: T0 + 20_000,
    });
  });
});

describe('what was missed', () => {
  const late = 5.5 * HOUR;

  it('is skipped, or made up once for the last one, or for all', () => {
    const nextAt = T0 + 6 * HOUR;
    expect(plan({ missed: 'skip' }, late)).toEqual({ occurrences: [], nextAt });
    expect(plan({}, late)).toEqual({ occurrences: hours(5), nextAt });
    expect(plan({ missed: 'all' }, late)).toEqual({ occurrences: hours(0, 1, 2, 3, 4, 5), nextAt });
  });

  it('is limited to the last maxMissed if there are more', () => {
    const rule = { missed: 'all', maxMissed: 2 } as const;
    expect(plan(rule, late)).toEqual({ occurrences: hours(4, 5), nextAt: T0 + 6 * HOUR });
    expect(plan({ ...rule, maxMissed: 6 }, late).occurrences).toEqual(hours(0, 1, 2, 3, 4, 5));
    expect(plan({ ...rule, every: '1s', maxMissed: 3 }, 1_000 * HOUR).occurrences).toHaveLength(3);
  });

  it('is made up in parts if it is too much, continuing after the last part', () => {
    const rule = { missed: 'all' } as const;
    const first = plan(rule, late, 4);
    expect(first).toEqual({ occurrences: hours(0, 1, 2, 3), nextAt: T0 + 4 * HOUR });
    const checked = checkScheduleRule({ every: '1h', ...rule }, 'rule')!;
    const second = planFiring(checked, first.nextAt!, T0 + late, 4);
    expect(second).toEqual({ occurrences: hours(4, 5), nextAt: T0 + 6 * HOUR });
  });

  it('is only the last one if each replaces the one before', () => {
    expect(plan({ missed: 'all', overlap: 'replace' }, late).occurrences).toEqual(hours(5));
  });

  it('ends with endAt', () => {
    const rule = { missed: 'all', endAt: T0 + 2 * HOUR } as const;
    expect(plan(rule, late)).toEqual({ occurrences: hours(0, 1, 2), nextAt: null });
    expect(plan({ ...rule, missed: 'skip' }, late)).toEqual({ occurrences: [], nextAt: null });
    expect(plan({ endAt: T0 }, 10)).toEqual({ occurrences: [T0], nextAt: null });
  });
});

it('the stored next time is used, although the zone has other rules by now', () => {
  const rule = checkScheduleRule({ cron: '0 7 * * *', missed: 'all' }, 'rule')!;
  const odd = T0 + 6 * HOUR;
  expect(planFiring(rule, odd, odd, 10)).toEqual({ occurrences: [odd], nextAt: T0 + 7 * HOUR });
  expect(planFiring(rule, odd, T0 + 8 * HOUR, 10).occurrences).toEqual([odd, T0 + 7 * HOUR]);
});

it('looks for the end of a run at whole milliseconds, whatever the interval', () => {
  const rule = checkScheduleRule({ every: 10_001, afterEnd: true }, 'rule')!;
  expect(planFiring(rule, T0, T0, 10)).toEqual({ occurrences: [T0], nextAt: T0 + 501 });
});

it('ends a schedule that counts from the end of a run when the next run would be after endAt', () => {
  const rule = checkScheduleRule({ every: '1h', afterEnd: true, endAt: T0 + 90 * MINUTE }, 'rule')!;
  const planned = (now: number) => planFiring(rule, T0, now, 10);
  expect(planned(T0 + 30 * MINUTE)).toEqual({ occurrences: [T0], nextAt: T0 + 30 * MINUTE + 30_000 });
  expect(planned(T0 + 30 * MINUTE + 1)).toEqual({ occurrences: [T0], nextAt: null });
});

const made = (rule: object, template: object) =>
  makeSchedule(rule, template, { maxPayloadBytes: 1_000, payloads: 'strict' }, 'up()');

describe('a record', () => {
  it('is read back unchanged, also values that JSON treats specially', () => {
    const data = JSON.parse('{"__proto__":{"a":1},"2":"b","1":"a","nested":[null,1.5]}') as object;
    const options = { attempts: 2, backoff: { type: 'fixed', delay: '1s' }, priority: 5, retention: '1h' };
    const startAt = new Date(T0);
    const { record, ...schedule } = made({ every: '1h', startAt, limit: 3 }, { name: 'x', data, options });
    expect(readRecord(record)).toEqual(schedule);
    expect(schedule.given).toEqual({ every: '1h', startAt: T0, limit: 3 });
    expect(JSON.stringify(schedule.template.data)).toBe(JSON.stringify(data));
    expect(schedule.options).toMatchObject({ attempts: 2, priority: 5, retentionMs: HOUR });
  });

  it('is the same text for the same fields in another order', () => {
    const one = made({ every: '1h', limit: 3 }, { name: 'x', data: null });
    const other = made({ limit: 3, every: '1h', jitter: undefined }, { data: undefined, name: 'x' });
    expect(other.record).toBe(one.record);
  });

  it.each([
    '',
    'null',
    '5',
    '[]',
    '{}',
    'not json',
    '{"v":2,"rule":{"every":"1h"},"template":{"name":"x","data":null}}',
    '{"v":1,"rule":{"every":"1h"}}',
    '{"v":1,"rule":{"every":1},"template":{"name":"x","data":null}}',
    '{"v":1,"rule":{"every":"1h"},"template":{"name":"","data":null}}',
    '{"v":1,"rule":{"every":"1h"},"template":{"name":"x"}}',
    '{"v":1,"rule":{"every":"1h"},"template":{"name":"x","data":1,"options":{"delay":1}}}',
    '{"v":1,"rule":{"every":"1h"},"template":{"name":"x","data":1,"options":5}}',
  ])('%j is invalid', (text) => {
    expect(readRecord(text)).toBeNull();
  });

  it('has the same timing if only the notation differs', () => {
    const timing = (rule: object) => checkScheduleRule(rule, 'rule')!;
    const one = timing({ every: '1h' });
    expect(isSameTiming(one, timing({ every: HOUR, overlap: 'skip', jitter: 5 }))).toBe(true);
    for (const more of [{ every: '2h' }, { limit: 5 }, { startAt: 0 }, { endAt: T0 }])
      expect(isSameTiming(one, timing({ every: '1h', ...more }))).toBe(false);
    const cron = { cron: '0 0 * * *' };
    expect(isSameTiming(timing(cron), timing({ ...cron, tz: 'UTC' }))).toBe(true);
    expect(isSameTiming(timing(cron), timing({ ...cron, tz: 'Asia/Tokyo' }))).toBe(false);
  });
});

describe('an invalid template is refused with a message', () => {
  const rule = { every: '1h' };
  it.each<[string, unknown, string]>([
    ['none', undefined, 'up().template must be an object, got undefined'],
    ['a name of nothing', { name: '' }, 'a job name is 1 to 255 bytes'],
    ['data that JSON cannot hold', { name: 'x', data: { at: 5n } }, 'up().template.data.at is a BigInt'],
    ['large data', { name: 'x', data: 'x'.repeat(1_001) }, 'more than maxPayloadBytes (1000)'],
    [
      'an id',
      { name: 'x', options: { id: 'a' } },
      'up().template.options.id must be left out: the id of each job is made from the schedule',
    ],
    [
      'a delay',
      { name: 'x', options: { delay: 0 } },
      'up().template.options.delay must be left out: the schedule decides when',
    ],
    [
      'a moment',
      { name: 'x', options: { runAt: 5 } },
      'up().template.options.runAt must be left out: the schedule decides when',
    ],
    [
      'durability',
      { name: 'x', options: { durability: 'local' } },
      'up().template.options.durability must be left out: no caller waits',
    ],
    ['an option nobody knows', { name: 'x', options: { atempts: 2 } }, 'did you mean attempts?'],
    [
      'attempts of none',
      { name: 'x', options: { attempts: 0 } },
      'up().template.options.attempts must be an integer from 1',
    ],
    ['another field', { name: 'x', opts: {} }, 'up().template.opts is not an option'],
  ])('%s', (_, template, sentence) => {
    expect(() => made(rule, template as object)).toThrow(sentence);
  });

  it('also if code of it throws', () => {
    const options = Object.defineProperty({}, 'delay', {
      get: () => {
        throw new Error('no');
      },
      enumerable: true,
    });
    expect(() => made(rule, { name: 'x', options })).toThrow('must be something that can be read');
  });
});

describe('the job of an occurrence', () => {
  it('has an id of schedule and time, and was created when it is made', () => {
    const schedule = readRecord(
      made({ every: '1h' }, { name: 'x', data: [1], options: { attempts: 2 } }).record,
    )!;
    const job = occurrence('daily', schedule, T0, T0 + 5_000);
    expect(job).toMatchObject({ id: 'daily@2026-01-01T00:00:00.000Z', at: T0, dueAt: T0 });
    expect(decodeBody(job.body)).toEqual({
      name: 'x',
      createdAt: T0 + 5_000,
      options: { attempts: 2 },
      data: [1],
    });
  });

  it('keeps options that this version does not know, as they are', () => {
    const { record } = made({ every: '1h' }, { name: 'x', options: { attempts: 2 } });
    const newer = record.replace('"attempts":2', '"attempts":2,"labels":{"tenant":"a"},"tags":["b"]');
    const { body } = occurrence('daily', readRecord(newer)!, T0, T0);
    expect(body.split('\n')[2]).toBe('{"a":2,"labels":{"tenant":"a"},"tags":["b"]}');
    expect(decodeBody(body)!.options).toEqual({ attempts: 2 });
    // One letter is a known option in a body.
    expect(readRecord(record.replace('"attempts":2', '"a":2'))).toBeNull();
  });

  it('is delayed by a part of the jitter that is equal in every process and evenly distributed', () => {
    const schedule = readRecord(made({ every: '1h', jitter: '1m' }, { name: 'x' }).record)!;
    const late = hours(...Array.from({ length: 1_000 }, (_, i) => i)).map(
      (at) => occurrence('daily', schedule, at, at).dueAt - at,
    );
    expect(occurrence('daily', schedule, T0, T0 + 9).dueAt - T0).toBe(late[0]);
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...late)).toBeLessThan(60_000);
    const mean = late.reduce((sum, ms) => sum + ms, 0) / late.length;
    expect(mean).toBeGreaterThan(27_000);
    expect(mean).toBeLessThan(33_000);
    expect(occurrence('other', schedule, T0, T0).dueAt - T0).not.toBe(late[0]);
  });
});
